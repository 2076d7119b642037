//! The control plane as something the system starts by itself: what its unit says, and where that goes.

pub mod launchd;
pub mod systemd;

use std::path::{Path, PathBuf};

use polyclaw_domain::audit::fingerprint;

/// The first words of every unit of ours: what does not have them is somebody else's.
pub const MARK: &str = "Written by `polyclaw service install`";

/// What is to run.
pub struct Service {
    pub program: PathBuf,
    pub home: PathBuf,
    /// Whose home it is.
    pub user_home: PathBuf,
    /// Where the user's settings are, if not at the usual place.
    pub settings: Option<PathBuf>,
}

/// A file to write, and what makes the system take notice of it.
pub struct Unit {
    pub path: PathBuf,
    pub text: String,
    pub install: Vec<Vec<String>>,
    pub uninstall: Vec<Vec<String>>,
    pub status: Vec<String>,
}

impl Service {
    /// `polyclaw`, or a name of its own for a home at another place.
    pub fn name(&self) -> String {
        if self.home == self.user_home.join(".polyclaw") {
            return "polyclaw".to_owned();
        }
        format!("polyclaw-{}", &fingerprint(self.home.as_os_str().as_encoded_bytes())[..8])
    }

    pub fn unit(&self) -> Unit {
        if cfg!(target_os = "macos") { launchd::unit(self) } else { systemd::unit(self) }
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
