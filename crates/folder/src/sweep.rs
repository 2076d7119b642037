//! Removes temporary files that an interrupted write left in a workspace.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{FileType, Stat};

use crate::handle::{FolderHandle, TEMPORARY_PREFIX, file_type, is_temporary};

/// A write takes moments: the writer of an older file is gone, whatever process has its number now.
const MAX_TEMPORARY_AGE: Duration = Duration::from_secs(600);
const MAX_SWEPT_ENTRIES: usize = 500_000;
/// One descriptor is open for each level.
const MAX_SWEPT_DEPTH: usize = 128;

/// Removes what processes that were killed in the middle of a write left below a workspace. Returns how many files that
/// were.
pub fn sweep_temporary(workspace: &Path) -> usize {
    let Ok(root) = FolderHandle::open_base(workspace) else { return 0 };
    let (mut removed, mut seen) = (0, 0);
    let mut levels = vec![SweptLevel::read(root, &mut removed, &mut seen)];
    while let Some(level) = levels.last_mut().filter(|_| seen < MAX_SWEPT_ENTRIES) {
        let Some(name) = level.folders.pop() else {
            levels.pop();
            continue;
        };
        let child = level.folder.open_child(&name);
        if let Some(child) = child.ok().filter(|_| levels.len() < MAX_SWEPT_DEPTH) {
            levels.push(SweptLevel::read(child, &mut removed, &mut seen));
        }
    }
    removed
}

/// An open folder, and the folders in it that are still to be entered.
struct SweptLevel {
    folder: FolderHandle,
    folders: Vec<OsString>,
}

impl SweptLevel {
    /// Removes what is left behind in one folder.
    fn read(folder: FolderHandle, removed: &mut usize, seen: &mut usize) -> Self {
        let mut folders = Vec::new();
        for name in folder.names().into_iter().flatten().flatten() {
            *seen += 1;
            if *seen > MAX_SWEPT_ENTRIES {
                break;
            }
            let Ok(Some(stat)) = folder.stat(&name) else { continue };
            match file_type(&stat) {
                FileType::Directory => folders.push(name),
                FileType::RegularFile if is_left_behind(&name, &stat) => {
                    *removed += usize::from(folder.remove_file(&name).is_ok());
                }
                _ => {}
            }
        }
        Self { folder, folders }
    }
}

/// Whether its writer is gone. A worker has process numbers of its own: what it left is recognized by its age.
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
    fn temporary_files_of_processes_that_are_gone_are_swept() {
        let (home, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let below = home.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        let own = std::process::id();
        // No process has a number this large.
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
