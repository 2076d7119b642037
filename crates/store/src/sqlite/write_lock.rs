//! Fair write access for several processes to one file. SQLite serves the one that asks at the right moment, and one
//! that has just written asks again before the others wake up: of four, one may wait a hundred times as long as it
//! writes. Therefore only the process that holds a second lock asks SQLite, and after a write it queues behind the
//! waiting ones. The locks of a dead process are released, and a process that hangs is waited for only until the
//! timeout.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use super::{BUSY_TIMEOUT, spawn_thread};
use crate::error::{Error, Result};

/// The lock at the head of the queue.
pub(super) struct FileWriteLock {
    file: Arc<File>,
    /// A thread of this process is waiting for it.
    is_waited_for: Arc<AtomicBool>,
    timeout: Duration,
}

impl FileWriteLock {
    /// Uses a file next to the database at `path`.
    pub fn for_database(path: &Path) -> Result<Self> {
        let mut name = OsString::from(path);
        name.push("-turn");
        let mut options = File::options();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let open = options.create(true).truncate(false).write(true).open(&name);
        let file =
            open.map_err(|error| Error::Other(format!("cannot create {}: {error}", name.display())))?;
        Ok(Self { file: Arc::new(file), is_waited_for: Arc::default(), timeout: BUSY_TIMEOUT })
    }

    /// Runs `begin` at the head of the queue. If the file system has no locks or the queue does not move, it runs
    /// anyway and only the order is lost.
    pub fn run_locked<T>(&self, begin: impl FnOnce() -> T) -> T {
        let is_held = self.acquire_in_time();
        let started = begin();
        if is_held {
            let _ = self.file.unlock();
        }
        started
    }

    /// Acquires the lock. Returns false on a timeout.
    fn acquire_in_time(&self) -> bool {
        match self.file.try_lock() {
            Ok(()) => true,
            Err(TryLockError::Error(_)) => false,
            // After a timeout, callers do not wait again until the queue moves.
            Err(TryLockError::WouldBlock) => {
                !self.is_waited_for.swap(true, Ordering::SeqCst) && self.wait_in_queue()
            }
        }
    }

    /// Waits in another thread, which releases the lock if nobody wants it any more. Polling instead would be served by
    /// chance only.
    fn wait_in_queue(&self) -> bool {
        let (file, is_waited_for) = (Arc::clone(&self.file), Arc::clone(&self.is_waited_for));
        let (hand_over, reached) = mpsc::sync_channel(0);
        let wait = move || {
            let is_held = file.lock().is_ok();
            is_waited_for.store(false, Ordering::SeqCst);
            if hand_over.send(is_held).is_err() && is_held {
                let _ = file.unlock();
            }
        };
        if spawn_thread("sqlite-turn", wait).is_err() {
            self.is_waited_for.store(false, Ordering::SeqCst);
            return false;
        }
        reached.recv_timeout(self.timeout).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use super::*;

    const PATIENT: Duration = Duration::from_millis(300);

    fn turn(folder: &Path) -> FileWriteLock {
        FileWriteLock { timeout: PATIENT, ..FileWriteLock::for_database(&folder.join("ledger.db")).unwrap() }
    }

    #[test]
    fn lock_file_is_readable_by_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        turn(folder.path());
        let mode = std::fs::metadata(folder.path().join("ledger.db-turn")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn stuck_lock_holder_delays_writers_only_until_timeout() {
        let folder = tempfile::tempdir().unwrap();
        let (own, stopped) = (turn(folder.path()), turn(folder.path()));
        stopped.file.lock().unwrap();
        let began = Instant::now();
        assert_eq!(own.run_locked(|| "written"), "written");
        assert!(began.elapsed() >= PATIENT, "it stands in line at first");
        let began = Instant::now();
        own.run_locked(|| ());
        assert!(began.elapsed() < PATIENT, "and does not do so again for each that it writes");
        stopped.file.unlock().unwrap();
        while own.is_waited_for.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(20));
        let is_in_order = own.run_locked(|| stopped.file.try_lock().is_err());
        assert!(is_in_order, "when the queue moves there is order again");
        assert!(stopped.file.try_lock().is_ok(), "and nothing is held that nobody wants");
    }

    #[test]
    fn waiting_writer_gets_the_lock_when_holder_releases() {
        let folder = tempfile::tempdir().unwrap();
        let (own, other) = (turn(folder.path()), turn(folder.path()));
        other.file.lock().unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| own.run_locked(|| other.file.try_lock().is_err()));
            thread::sleep(Duration::from_millis(50));
            other.file.unlock().unwrap();
            assert!(waiting.join().unwrap(), "it holds the place it waited for");
        });
    }
}
