//! Rotates full logs.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{MAX_LOG_BYTES, RETAINED_LOGS, rotated_path};
use crate::file::FILE_MODE;

/// Rotates the log if it is full. Only for the daemon itself, or the process that is about to start it.
pub fn rotate_if_full(log: &Path) -> io::Result<bool> {
    let full = fs::metadata(log).is_ok_and(|meta| meta.size() >= MAX_LOG_BYTES);
    if full {
        rotate_files(log)?;
    }
    Ok(full)
}

fn rotate_files(log: &Path) -> io::Result<()> {
    for n in (0..RETAINED_LOGS).rev() {
        match fs::rename(rotated_path(log, n), rotated_path(log, n + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The log that receives a daemon's stderr.
pub struct RotatingLog {
    path: PathBuf,
    written: AtomicU64,
    turn: Mutex<()>,
}

impl RotatingLog {
    pub fn new(path: PathBuf) -> Self {
        let written = fs::metadata(&path).map_or(0, |meta| meta.size());
        Self { path, written: written.into(), turn: Mutex::default() }
    }

    /// Counts written bytes. Rotates a full log and redirects stdout and stderr to a new file. A failure is retried
    /// with the next line; meanwhile the log grows.
    pub fn record_written(&self, bytes: usize) {
        let written = self.written.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        if written < MAX_LOG_BYTES {
            return;
        }
        // Another thread is rotating it.
        let Ok(_turn) = self.turn.try_lock() else { return };
        if self.written.load(Ordering::Relaxed) >= MAX_LOG_BYTES && self.start_new_file().is_ok() {
            self.written.store(0, Ordering::Relaxed);
        }
    }

    fn start_new_file(&self) -> io::Result<()> {
        rotate_files(&self.path)?;
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
    fn only_full_logs_are_rotated_and_five_are_retained() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("daemon.log");
        fs::write(&log, "short").unwrap();
        assert!(!rotate_if_full(&log).unwrap());
        for n in 0..7 {
            fs::write(&log, format!("{n}")).unwrap();
            rotate_files(&log).unwrap();
        }
        let kept: Vec<String> =
            (1..=RETAINED_LOGS).map(|n| fs::read_to_string(rotated_path(&log, n)).unwrap()).collect();
        assert_eq!(kept, ["6", "5", "4", "3", "2"]);
        assert!(!log.exists() && !rotated_path(&log, RETAINED_LOGS + 1).exists());
        fs::File::create(&log).unwrap().set_len(MAX_LOG_BYTES).unwrap();
        assert!(rotate_if_full(&log).unwrap() && !log.exists());
    }
}
