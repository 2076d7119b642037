//! The control plane as something the system starts by itself: what its unit says, and where that goes.

pub mod launchd;
pub mod systemd;

use std::path::{Path, PathBuf};

use polyclaw_domain::audit::content_hash;

/// The first words of every unit of ours: what does not have them is somebody else's.
pub const UNIT_MARK: &str = "Written by `polyclaw service install`";

/// Variables that say where it listens, and under which names.
pub const LISTEN_VARIABLES: [&str; 3] = ["POLYCLAW_CP_BIND", "POLYCLAW_CP_PORT", "POLYCLAW_CP_ALLOWED_HOSTS"];

/// What is to run.
pub struct ServiceSpec {
    pub program: PathBuf,
    pub home: PathBuf,
    /// Whose home it is.
    pub user_home: PathBuf,
    /// Where the user's settings are, if not at the usual place.
    pub settings: Option<PathBuf>,
    /// Those of `PLACE` that are set.
    pub place: Vec<(String, String)>,
}

/// A file to write, and what makes the system take notice of it.
pub struct ServiceUnit {
    pub path: PathBuf,
    pub text: String,
    pub install: Vec<Vec<String>>,
    pub uninstall: Vec<Vec<String>>,
    pub status: Vec<String>,
}

impl ServiceSpec {
    /// `polyclaw`, or a name of its own for a home at another place.
    pub fn name(&self) -> String {
        if self.home == self.user_home.join(".polyclaw") {
            return "polyclaw".to_owned();
        }
        format!("polyclaw-{}", &content_hash(self.home.as_os_str().as_encoded_bytes())[..8])
    }

    /// What it finds in its environment.
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
