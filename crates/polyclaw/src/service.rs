//! The control plane as a system service: its unit file and the unit's location.

pub mod launchd;
pub mod systemd;

use std::path::{Path, PathBuf};

use polyclaw_domain::audit::content_hash;

/// Marks every unit that Polyclaw wrote. A unit without it is not ours.
pub const UNIT_MARK: &str = "Written by `polyclaw service install`";

/// Environment variables with the listen address and host names.
pub const LISTEN_VARIABLES: [&str; 3] = ["POLYCLAW_CP_BIND", "POLYCLAW_CP_PORT", "POLYCLAW_CP_ALLOWED_HOSTS"];

/// Describes the service to run.
pub struct ServiceSpec {
    pub program: PathBuf,
    pub home: PathBuf,
    /// The user's home directory.
    pub user_home: PathBuf,
    /// The user's config directory, if not the default.
    pub settings: Option<PathBuf>,
    /// The variables of [`LISTEN_VARIABLES`] that are set.
    pub place: Vec<(String, String)>,
}

/// A unit file, and the commands that register it with the system.
pub struct ServiceUnit {
    pub path: PathBuf,
    pub text: String,
    pub install: Vec<Vec<String>>,
    pub uninstall: Vec<Vec<String>>,
    pub status: Vec<String>,
}

impl ServiceSpec {
    /// Returns `polyclaw`, or a unique name for a home in another location.
    pub fn name(&self) -> String {
        if self.home == self.user_home.join(".polyclaw") {
            return "polyclaw".to_owned();
        }
        format!("polyclaw-{}", &content_hash(self.home.as_os_str().as_encoded_bytes())[..8])
    }

    /// Returns the environment of the service.
    pub fn environment(&self) -> Vec<(String, String)> {
        [vec![("POLYCLAW_HOME".to_owned(), path_text(&self.home))], self.place.clone()].concat()
    }

    pub fn system_unit(&self) -> ServiceUnit {
        if cfg!(target_os = "macos") { launchd::launchd_unit(self) } else { systemd::systemd_unit(self) }
    }
}

fn split_words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
