//! The folder of an instance and the paths in it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use polyclaw_store::registry::InstanceRecord;

use crate::error::{Error, Result};
use crate::file;
use crate::lock::{self, HeldLock};

/// Possible names of the config, the default first. The others are JSON with comments.
const CONFIG_FILE_NAMES: [&str; 3] = ["config.toml", "config.json5", "config.json"];

/// The folder of the instance that is the home itself.
pub const HOME_FOLDER: &str = ".";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstancePaths(PathBuf);

impl InstancePaths {
    pub fn for_instance(home: &Path, one: &InstanceRecord) -> Self {
        Self::from_folder(if one.folder == HOME_FOLDER { home.to_owned() } else { home.join(&one.folder) })
    }

    pub fn from_folder(folder: PathBuf) -> Self {
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns `config.toml`, or the JSON config if that exists instead.
    pub fn config_file(&self) -> PathBuf {
        self.list_config_files().into_iter().next().unwrap_or_else(|| self.0.join(CONFIG_FILE_NAMES[0]))
    }

    /// Lists all existing configs. More than one is an error.
    pub fn list_config_files(&self) -> Vec<PathBuf> {
        CONFIG_FILE_NAMES.iter().map(|name| self.0.join(name)).filter(|path| path.exists()).collect()
    }

    /// The previous version of the config.
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

    pub fn log_folder(&self) -> PathBuf {
        self.0.join("logs")
    }

    pub fn log_file(&self) -> PathBuf {
        self.log_folder().join("daemon.log")
    }

    pub fn database_file(&self) -> PathBuf {
        self.0.join("memory").join("sessions.db")
    }

    pub fn workspace_folder(&self) -> PathBuf {
        self.0.join("workspace")
    }

    /// Marks a folder whose creation is not finished, or was interrupted.
    pub fn creation_marker(&self) -> PathBuf {
        self.0.join(".creating")
    }

    /// The folders of every new instance.
    pub fn initial_folders(&self) -> [PathBuf; 6] {
        [
            self.0.clone(),
            self.log_folder(),
            self.0.join("memory"),
            self.0.join("teams"),
            self.workspace_folder().join("skills"),
            self.workspace_folder().join("agents"),
        ]
    }

    /// Reads the pid that the daemon wrote. The daemon may have died since.
    pub fn read_pid(&self) -> Option<i32> {
        file::read_text(&self.pid_file(), file::MAX_SMALL_FILE_BYTES)
            .ok()?
            .trim()
            .parse()
            .ok()
            .filter(|pid| *pid > 0)
    }

    /// Reads the pid of the process that must end with the server, even if the server that started it was killed.
    pub fn read_ending_pid(&self) -> Option<i32> {
        file::read_text(&self.ending_file(), file::MAX_SMALL_FILE_BYTES).ok()?.trim().parse().ok()
    }

    pub fn write_ending_pid(&self, pid: Option<i32>) -> std::io::Result<()> {
        match pid {
            Some(pid) => std::fs::write(self.ending_file(), format!("{pid}\n")),
            None if self.ending_file().exists() => std::fs::remove_file(self.ending_file()),
            None => Ok(()),
        }
    }

    fn ending_file(&self) -> PathBuf {
        self.0.join("ends.pid")
    }

    /// Reads the address that the daemon wrote. The daemon may have died since.
    pub fn read_noted_address(&self) -> Option<SocketAddr> {
        let note = file::read_text(&self.0.join("daemon.url"), file::MAX_SMALL_FILE_BYTES).ok()?;
        note.trim().strip_prefix("http://")?.parse().ok()
    }

    /// Locks the instance for an operation. Returns `None` while another operation holds the lock.
    pub fn try_lock(&self) -> Result<Option<HeldLock>> {
        let path = self.0.join("lifecycle.lock");
        lock::try_acquire(&path).map_err(|error| Error::from_io(path, &error))
    }
}
