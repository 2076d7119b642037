//! Translates the config's sandbox settings into those of the `tool` crate.

use std::path::{Path, PathBuf};
use std::time::Duration;

use polyclaw_domain::config::{SandboxConfig, WorkerPoolConfig};
use polyclaw_tool::sandbox::{NamespaceMode, SandboxLauncherSettings};
use polyclaw_tool::worker;

use crate::home::Home;

/// Where distributions install bubblewrap. PATH is not used: it may name a folder that others can write to.
const BUBBLEWRAP_PATHS: [&str; 2] = ["/usr/bin/bwrap", "/usr/local/bin/bwrap"];

pub fn sandbox_settings(config: &SandboxConfig, home: &Home) -> SandboxLauncherSettings {
    SandboxLauncherSettings {
        // The running executable, even after an update has replaced its file.
        helper: ["/proc/self/exe", "sandbox-exec"].map(str::to_owned).to_vec(),
        temporary: home.temporary_dir(),
        readable: config.readable.iter().map(PathBuf::from).collect(),
        hidden: vec![home.path().to_owned(), home.config_file(), home.token_file(), home.database_file()],
        ways: namespace_modes(config),
        inherited: None,
    }
}

pub fn worker_settings(config: &WorkerPoolConfig) -> worker::WorkerPoolSettings {
    worker::WorkerPoolSettings {
        command: ["/proc/self/exe", "worker"].map(str::to_owned).to_vec(),
        min: config.min.into(),
        max: config.max.into(),
        idle: Duration::from_secs(config.idle_seconds.into()),
        wait: Duration::from_secs(config.wait_seconds.into()),
        calls: config.calls.into(),
    }
}

fn namespace_modes(config: &SandboxConfig) -> Vec<NamespaceMode> {
    let found = BUBBLEWRAP_PATHS.iter().map(Path::new).find(|path| config.bubblewrap && path.exists());
    let wrap = found.map(|path| NamespaceMode::Bubblewrap(path.to_owned()));
    [NamespaceMode::Own].into_iter().chain(wrap).chain([NamespaceMode::Bare]).collect()
}

/// Removes temporary folders of program runs that a killed daemon left behind. Only for the holder of the home's lock.
/// Runs in the background, because large folders would delay the start.
pub fn sweep_leftover_runs(home: &Home) {
    let Ok(entries) = std::fs::read_dir(home.temporary_dir()) else { return };
    // Listed now: a run of this daemon takes a name only when it is free.
    let leftover: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    std::thread::spawn(move || {
        for folder in leftover {
            if let Err(error) = polyclaw_tree::remove_tree(&folder) {
                let folder = folder.display();
                tracing::warn!(%folder, %error, "could not remove a temporary folder of an earlier run");
            }
        }
    });
}
