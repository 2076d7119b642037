//! File locks that the kernel releases when their holder dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::file::FILE_MODE;

/// Longer than a check by `is_held` holds a lock.
const LOCK_RETRY_AFTER: Duration = Duration::from_millis(2);
const MAX_LOCK_TRIES: usize = 5;

/// A lock that is held until dropped.
#[derive(Debug)]
pub struct HeldLock(#[allow(dead_code, reason = "it is held, not used")] File);

/// Whether the lock is held. Only its owner can open the file, so the holder is a process of the owner.
pub fn is_held(path: &Path) -> bool {
    // A shared lock, so that concurrent checks do not block each other and delay a taker only briefly.
    File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Acquires a lock. Returns `None` if it is held.
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
