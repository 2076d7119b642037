//! Locks that the kernel lets go of when their holder dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::file::FILE_MODE;

/// Held until it is dropped.
#[derive(Debug)]
pub struct Held(#[allow(dead_code, reason = "it is held, not used")] File);

/// Takes a lock nobody has; `None` where somebody does.
pub fn take(path: &Path) -> Result<Option<Held>> {
    let open = OpenOptions::new().create(true).append(true).mode(FILE_MODE).open(path);
    let file = open.map_err(|error| Error::files(path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(Held(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(Error::files(path, &error)),
    }
}
