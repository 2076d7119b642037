//! Locks that the kernel lets go of when their holder dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::file::FILE_MODE;

/// Whoever asks whether a lock is held has it for less than this.
const LOCK_RETRY_AFTER: Duration = Duration::from_millis(2);
const MAX_LOCK_TRIES: usize = 5;

/// Held until it is dropped.
#[derive(Debug)]
pub struct HeldLock(#[allow(dead_code, reason = "it is held, not used")] File);

/// Whether somebody holds it. Only its owner can open it, so whoever does is the owner's.
pub fn is_held(path: &Path) -> bool {
    // A lock that is shared by those who ask is in the way of whoever takes it for a moment only.
    File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Takes a lock nobody has; `None` where somebody does.
pub fn try_acquire(path: &Path) -> io::Result<Option<HeldLock>> {
    let file = OpenOptions::new().create(true).append(true).mode(FILE_MODE).open(path)?;
    for _ in 0..MAX_LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(Some(HeldLock(file))),
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_RETRY_AFTER),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}
