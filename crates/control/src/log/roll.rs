//! Moves a full log aside.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{FULL, KEPT, aside};
use crate::file::FILE_MODE;

/// Moves the log aside if it is full. Only for who is about to start the daemon, or is it.
pub fn rotate_if_full(log: &Path) -> io::Result<bool> {
    let full = fs::metadata(log).is_ok_and(|meta| meta.size() >= FULL);
    if full {
        rotate(log)?;
    }
    Ok(full)
}

fn rotate(log: &Path) -> io::Result<()> {
    for n in (0..KEPT).rev() {
        match fs::rename(aside(log, n), aside(log, n + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The log a daemon writes to as its stderr.
pub struct Rolling {
    path: PathBuf,
    written: AtomicU64,
    turn: Mutex<()>,
}

impl Rolling {
    pub fn new(path: PathBuf) -> Self {
        let written = fs::metadata(&path).map_or(0, |meta| meta.size());
        Self { path, written: written.into(), turn: Mutex::default() }
    }

    /// Counts what was written. A log that is full by now is moved aside, and stdout and stderr are another from here
    /// on. What fails is tried again with the next line: the log only grows longer.
    pub fn wrote(&self, bytes: usize) {
        let written = self.written.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        if written < FULL {
            return;
        }
        // Somebody else is at it.
        let Ok(_turn) = self.turn.try_lock() else { return };
        if self.written.load(Ordering::Relaxed) >= FULL && self.begin_another().is_ok() {
            self.written.store(0, Ordering::Relaxed);
        }
    }

    fn begin_another(&self) -> io::Result<()> {
        rotate(&self.path)?;
        let file = OpenOptions::new().create(true).append(true).mode(FILE_MODE).open(&self.path)?;
        rustix::stdio::dup2_stderr(&file)?;
        rustix::stdio::dup2_stdout(&file)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_are_kept_and_only_full_ones_are_moved() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("daemon.log");
        fs::write(&log, "short").unwrap();
        assert!(!rotate_if_full(&log).unwrap());
        for n in 0..7 {
            fs::write(&log, format!("{n}")).unwrap();
            rotate(&log).unwrap();
        }
        let kept: Vec<String> = (1..=KEPT).map(|n| fs::read_to_string(aside(&log, n)).unwrap()).collect();
        assert_eq!(kept, ["6", "5", "4", "3", "2"]);
        assert!(!log.exists() && !aside(&log, KEPT + 1).exists());
        fs::File::create(&log).unwrap().set_len(FULL).unwrap();
        assert!(rotate_if_full(&log).unwrap() && !log.exists());
    }
}
