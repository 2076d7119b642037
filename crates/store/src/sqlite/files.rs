//! Checks whether the files of a database are still those that were opened. SQLite keeps writing into files that were
//! removed or replaced, and such commits are lost when the process ends.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{SqliteWriter, checkpoint};
use crate::error::{Error, Result};

/// Minimum interval between two checks, because a write waits for a check.
const FILE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

pub(super) struct DatabaseFiles {
    opened: Vec<OpenedFile>,
    since: Instant,
    /// Time of the next check, in milliseconds from `since`.
    next_check_ms: AtomicU64,
    /// The fault was logged, and everything that could be saved was saved.
    is_noted: AtomicBool,
    is_lost: AtomicBool,
}

/// A file and its identity when it was opened.
struct OpenedFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl OpenedFile {
    fn from_path(path: PathBuf) -> Option<Self> {
        let found = fs::metadata(&path).ok()?;
        Some(Self { path, device: found.dev(), inode: found.ino() })
    }

    /// Returns what happened to the file; `None` if it is still the same, or that is unknown.
    fn find_fault(&self) -> Option<&'static str> {
        match fs::metadata(&self.path) {
            Ok(found) if found.dev() == self.device && found.ino() == self.inode => None,
            Ok(_) => Some("replaced"),
            Err(error) if error.kind() == ErrorKind::NotFound => Some("removed"),
            Err(_) => None,
        }
    }
}

impl DatabaseFiles {
    /// Call it after the database was opened, when the log and its index exist.
    pub fn for_database(path: &Path) -> Self {
        let sibling_of = |suffix: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let opened =
            ["", "-wal", "-shm"].into_iter().filter_map(|suffix| OpenedFile::from_path(sibling_of(suffix)));
        Self {
            opened: opened.collect(),
            since: Instant::now(),
            next_check_ms: 0.into(),
            is_noted: false.into(),
            is_lost: false.into(),
        }
    }

    /// Fails if a file was removed or replaced. It succeeds again once the original file is put back.
    pub fn check_replaced(&self, writer: &SqliteWriter) -> Result<()> {
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let is_due = now >= self.next_check_ms.load(Ordering::Relaxed);
        if !is_due && !self.is_lost.load(Ordering::Relaxed) {
            return Ok(());
        }
        let pace = u64::try_from(FILE_CHECK_INTERVAL.as_millis()).unwrap_or_default();
        self.next_check_ms.store(now.saturating_add(pace), Ordering::Relaxed);
        let fault = self.opened.iter().find_map(|file| Some((file, file.find_fault()?)));
        self.is_lost.store(fault.is_some(), Ordering::Relaxed);
        let Some((file, fault)) = fault else { return Ok(()) };
        let text = format!("{} was {fault}", file.path.display());
        if !self.is_noted.swap(true, Ordering::SeqCst) {
            tracing::error!(
                "database files changed under the running process: {text}; writes are rejected, restart the process"
            );
            self.save_removed_log(writer);
        }
        Err(Error::FilesReplaced(text))
    }

    /// Moves the contents of a removed log, which the open file still has, into the database for the next start.
    /// Nothing is changed if another log took its place or the database itself is gone.
    fn save_removed_log(&self, writer: &SqliteWriter) {
        let faults: Vec<_> = self.opened.iter().map(OpenedFile::find_fault).collect();
        let is_safe = faults.first() == Some(&None) && !faults.contains(&Some("replaced"));
        if !is_safe {
            return;
        }
        writer.run_exclusively(|connection| {
            match checkpoint::run_checkpoint(connection, "PRAGMA wal_checkpoint(FULL)") {
                Ok(_) => tracing::warn!("saved the contents of the removed log into the database"),
                Err(error) => tracing::error!(%error, "cannot save the contents of the removed log"),
            }
        });
    }
}
