//! The folder of an instance, and where things are in it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use polyclaw_store::registry::InstanceRecord;

use crate::error::{Error, Result};
use crate::file;
use crate::lock::{self, Held};

/// The names a config may have, the first of them the usual one. The others are JSON with comments.
const CONFIGS: [&str; 3] = ["config.toml", "config.json5", "config.json"];

/// The folder that is the home itself.
pub const HOME: &str = ".";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(PathBuf);

impl Place {
    pub fn of(home: &Path, one: &InstanceRecord) -> Self {
        Self::at(if one.folder == HOME { home.to_owned() } else { home.join(&one.folder) })
    }

    pub fn at(folder: PathBuf) -> Self {
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// `config.toml`, or the JSON that is there instead.
    pub fn config(&self) -> PathBuf {
        self.configs().into_iter().next().unwrap_or_else(|| self.0.join(CONFIGS[0]))
    }

    /// Every config that is there. More than one is a mistake.
    pub fn configs(&self) -> Vec<PathBuf> {
        CONFIGS.iter().map(|name| self.0.join(name)).filter(|path| path.exists()).collect()
    }

    /// The config before the last change.
    pub fn config_backup(&self) -> PathBuf {
        self.0.join("config.toml.bak")
    }

    pub fn pid_file(&self) -> PathBuf {
        self.0.join("daemon.pid")
    }

    pub fn token_file(&self) -> PathBuf {
        self.0.join("token")
    }

    pub fn secrets_file(&self) -> PathBuf {
        self.0.join("secrets.json")
    }

    pub fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    pub fn log(&self) -> PathBuf {
        self.logs().join("daemon.log")
    }

    pub fn database(&self) -> PathBuf {
        self.0.join("memory").join("sessions.db")
    }

    pub fn workspace(&self) -> PathBuf {
        self.0.join("workspace")
    }

    /// A folder with this in it is being made, or was when its maker died.
    pub fn unfinished(&self) -> PathBuf {
        self.0.join(".creating")
    }

    /// What every new instance has.
    pub fn folders(&self) -> [PathBuf; 6] {
        [
            self.0.clone(),
            self.logs(),
            self.0.join("memory"),
            self.0.join("teams"),
            self.workspace().join("skills"),
            self.workspace().join("agents"),
        ]
    }

    /// The pid as the daemon wrote it; it may have died since.
    pub fn pid(&self) -> Option<i32> {
        file::read_text(&self.pid_file(), file::SMALL).ok()?.trim().parse().ok().filter(|pid| *pid > 0)
    }

    /// The process that is to end with the server, also where the one that started it was killed.
    pub fn ending(&self) -> Option<i32> {
        file::read_text(&self.ending_file(), file::SMALL).ok()?.trim().parse().ok()
    }

    pub fn note_ending(&self, pid: Option<i32>) -> std::io::Result<()> {
        match pid {
            Some(pid) => std::fs::write(self.ending_file(), format!("{pid}\n")),
            None if self.ending_file().exists() => std::fs::remove_file(self.ending_file()),
            None => Ok(()),
        }
    }

    fn ending_file(&self) -> PathBuf {
        self.0.join("ends.pid")
    }

    /// Where the daemon wrote that it listens; it may have died since.
    pub fn noted_address(&self) -> Option<SocketAddr> {
        let note = file::read_text(&self.0.join("daemon.url"), file::SMALL).ok()?;
        note.trim().strip_prefix("http://")?.parse().ok()
    }

    /// The right to act on the instance; `None` while somebody else does.
    pub fn lock(&self) -> Result<Option<Held>> {
        let path = self.0.join("lifecycle.lock");
        lock::take(&path).map_err(|error| Error::files(path, &error))
    }
}
