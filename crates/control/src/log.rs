//! Logs of instances: `daemon.log` and up to five rotated files, `.1` being the newest. The daemon rotates its own
//! log, so that no other process stands between an instance and its log.

mod follow;
mod page;
mod rotate;

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use follow::{LogChunk, LogFollower};
pub use page::{LogPage, read_page};
pub use rotate::{RotatingLog, rotate_if_full};

/// The environment variable with the path of the log that receives a daemon's stderr and that the daemon rotates.
pub const LOG_FILE_VARIABLE: &str = "POLYCLAW_LOG_FILE";
pub const MAX_LOG_BYTES: u64 = 10 << 20;
pub const RETAINED_LOGS: usize = 5;
/// Most lines returned at a time.
pub const MAX_LOG_LINES: usize = 10_000;
/// Most bytes read to find the last lines.
const MAX_TAIL_BYTES: u64 = 4 << 20;

/// The path of a rotated log. 0 is the current log.
pub(crate) fn rotated_path(log: &Path, n: usize) -> PathBuf {
    if n == 0 {
        return log.to_owned();
    }
    let mut name = log.as_os_str().to_owned();
    name.push(format!(".{n}"));
    name.into()
}

/// Lists the existing files, oldest first.
pub fn list_log_files(log: &Path) -> Vec<PathBuf> {
    (0..=RETAINED_LOGS).rev().map(|n| rotated_path(log, n)).filter(|path| path.is_file()).collect()
}

/// Returns the last lines, oldest first. A missing log has none.
pub fn tail(log: &Path, lines: usize) -> io::Result<Vec<String>> {
    tail_of_files(list_log_files(log).into_iter().rev(), lines)
}

/// Returns the last lines of files that are given newest first.
fn tail_of_files(files: impl Iterator<Item = PathBuf>, lines: usize) -> io::Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    for path in files {
        if found.len() >= lines {
            break;
        }
        let mut more = last_lines(&path, lines - found.len())?;
        more.append(&mut found);
        found = more;
    }
    Ok(found)
}

fn last_lines(path: &Path, lines: usize) -> io::Result<Vec<String>> {
    let mut file = fs::File::open(path)?;
    let size = file.metadata()?.size();
    let from = size.saturating_sub(MAX_TAIL_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(MAX_TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // The first line of a window may be incomplete.
    let whole = text.lines().skip(usize::from(from > 0)).collect::<Vec<_>>();
    Ok(whole[whole.len().saturating_sub(lines)..].iter().map(|line| (*line).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_tail_continues_into_rotated_files() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("daemon.log");
        assert!(tail(&log, 3).unwrap().is_empty());
        fs::write(rotated_path(&log, 2), "1\n2\n").unwrap();
        fs::write(rotated_path(&log, 1), "3\n4\n").unwrap();
        fs::write(&log, "5\n").unwrap();
        assert_eq!(tail(&log, 3).unwrap(), ["3", "4", "5"]);
        assert_eq!(tail(&log, 99).unwrap(), ["1", "2", "3", "4", "5"]);
        assert!(tail(&log, 0).unwrap().is_empty());
    }
}
