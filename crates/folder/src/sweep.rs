//! Removes temporary files that an interrupted write left in a workspace.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{FileType, Stat};

use crate::handle::{FolderHandle, TEMPORARY_PREFIX, file_type, is_temporary};
use crate::walk::walk_folder;

/// A write takes only moments. The writer of an older file has exited, even if another process now has its process ID.
const MAX_TEMPORARY_AGE: Duration = Duration::from_secs(600);
const MAX_SWEPT_ENTRIES: usize = 500_000;

/// Removes temporary files below a workspace whose writers were killed during a write. Returns the number of removed
/// files.
pub fn sweep_temporary(workspace: &Path) -> usize {
    let Ok(root) = FolderHandle::open_base(workspace) else { return 0 };
    let (mut removed, mut seen) = (0, 0);
    // The walk fails only at the entry limit. The remaining entries are left to a later sweep.
    let _ = walk_folder(root, &mut |entry| {
        seen += 1;
        if file_type(&entry.stat) == FileType::RegularFile && is_left_behind(entry.name, &entry.stat) {
            removed += usize::from(entry.folder.remove_file(entry.name).is_ok());
        }
        if seen < MAX_SWEPT_ENTRIES { Ok(()) } else { Err(io::ErrorKind::QuotaExceeded.into()) }
    });
    removed
}

/// Returns whether a file is temporary and its writer has exited. A worker has separate process IDs, so its files are
/// recognized by their age.
fn is_left_behind(name: &OsStr, stat: &Stat) -> bool {
    if !is_temporary(name) {
        return false;
    }
    let name = name.to_string_lossy();
    let writer = name.strip_prefix(TEMPORARY_PREFIX).and_then(|rest| rest.split('-').next());
    let is_gone = writer.is_some_and(|pid| {
        pid.bytes().all(|byte| byte.is_ascii_digit()) && !Path::new("/proc").join(pid).exists()
    });
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0));
    is_gone || modified.elapsed().is_ok_and(|age| age > MAX_TEMPORARY_AGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_of_dead_processes_are_removed() {
        let (home, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let below = home.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        let own = std::process::id();
        // No process has an ID this large.
        let (left, kept) = (".polyclaw-99999999-0.tmp", format!(".polyclaw-{own}-0.tmp"));
        for name in [left, &kept, "notes.tmp", ".polyclaw-note"] {
            std::fs::write(below.join(name), "x").unwrap();
        }
        std::fs::write(outside.path().join(left), "x").unwrap();
        std::os::unix::fs::symlink(outside.path(), below.join("link")).unwrap();
        assert_eq!(sweep_temporary(home.path()), 1);
        assert!(!below.join(left).exists() && below.join(&kept).exists());
        assert!(below.join("notes.tmp").exists() && below.join(".polyclaw-note").exists());
        assert!(outside.path().join(left).exists(), "a link is not followed");
    }
}
