//! Turns at a file that several processes write. SQLite serves whoever asks at the right moment, and one that has just
//! written asks before the others have woken up: of four, one may wait a hundred times as long as it writes. So only one
//! process at a time asks SQLite, the one that holds a second lock, and whoever has written stands behind those who wait
//! for it. A process that dies holds neither.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;

use crate::error::{Error, Result};

/// The place at the head of the queue.
pub(super) struct Turn(File);

impl Turn {
    /// Of the database at `path`: a file beside it.
    pub fn beside(path: &Path) -> Result<Self> {
        let mut name = OsString::from(path);
        name.push("-turn");
        let open = File::options().create(true).truncate(false).write(true).open(&name);
        Ok(Self(
            open.map_err(|error| Error::Other(format!("{} could not be made: {error}", name.display())))?,
        ))
    }

    /// Runs `begin` at the head of the queue. Where a file system knows no locks, order is lost and nothing else.
    pub fn take<T>(&self, begin: impl FnOnce() -> T) -> T {
        let is_held = self.0.lock().is_ok();
        let begun = begin();
        if is_held {
            let _ = self.0.unlock();
        }
        begun
    }
}
