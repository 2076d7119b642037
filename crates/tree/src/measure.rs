//! Measures the disk usage of a folder tree.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, StatxFlags};
use rustix::io::Errno;

use crate::folder_access::{LISTING_RIGHTS, grant_owner_rights, open_subfolder};

const DISK_BLOCK_BYTES: u64 = 512;
/// Minimum disk usage per entry. Empty files count as well, because there could be millions of them.
const MIN_FILE_BYTES: u64 = 4096;
const MAX_MEASURE_DURATION: Duration = Duration::from_secs(2);
/// Maximum number of walks. A walk is repeated if it fails, for example because a folder was moved during it.
const MAX_WALKS: u32 = 3;

/// Specifies whether mounts below a folder are measured as part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountRule {
    Enter,
    /// A program's private `/tmp` contains a mount of its workspace, which must not be counted.
    Skip,
}

/// Returns the disk usage below a folder in bytes. Symbolic links below the folder are not followed. Counting stops
/// when the total exceeds `enough` or the time limit is reached, because a workspace may be a whole disk. If the owner
/// lacks permission to list a folder, that permission is granted, because the contents would otherwise not be counted.
pub fn measure_tree(folder: &Path, enough: u64, mounts: MountRule) -> u64 {
    let rule = match mounts {
        MountRule::Enter => ResolveFlags::empty(),
        MountRule::Skip => ResolveFlags::NO_XDEV,
    };
    let end = Instant::now() + MAX_MEASURE_DURATION;
    let mut most = 0;
    for _ in 0..MAX_WALKS {
        let mut walk = MeasuringWalk { used: 0, enough, end, rule, levels: Vec::new() };
        let is_whole = walk.measure_all(folder).is_ok();
        most = walk.used.max(most);
        if is_whole || most > enough {
            break;
        }
    }
    most
}

/// Returns the disk usage of a file in bytes, at least `MIN_FILE_BYTES`.
pub fn disk_bytes(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(DISK_BLOCK_BYTES).max(MIN_FILE_BYTES)
}

/// Returns the device and inode numbers, which identify a file on this machine.
pub fn file_identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// Moves down and up one level at a time and keeps only the current folder open.
struct MeasuringWalk {
    used: u64,
    enough: u64,
    end: Instant,
    rule: ResolveFlags,
    levels: Vec<MeasuredLevel>,
}

/// The open folder or one of its ancestors: its identity and its subfolders that are still to be entered.
struct MeasuredLevel {
    identity: (u64, u64),
    folders: Vec<CString>,
}

impl MeasuringWalk {
    fn measure_all(&mut self, folder: &Path) -> rustix::io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(mut at) = rustix::fs::openat(CWD, folder, flags, Mode::empty()) else { return Ok(()) };
        self.count_entries(&at)?;
        while let Some(level) = self.levels.last_mut().filter(|_| Instant::now() < self.end) {
            if self.used > self.enough {
                break;
            }
            if let Some(name) = level.folders.pop() {
                // For example, the folder was removed after it was listed, or belongs to another user.
                let Ok(child) = open_subfolder(at.as_fd(), &name, (self.rule, LISTING_RIGHTS)) else {
                    continue;
                };
                self.count_entries(&child)?;
                at = child;
                continue;
            }
            self.levels.pop();
            if let Some(level) = self.levels.last() {
                at = rustix::fs::openat(&at, c"..", flags, Mode::empty())?;
                if file_identity(&rustix::fs::fstat(&at)?) != level.identity {
                    return Err(Errno::STALE);
                }
            }
        }
        Ok(())
    }

    /// Counts the entries of a folder and records its subfolders.
    fn count_entries(&mut self, folder: &OwnedFd) -> rustix::io::Result<()> {
        // Reading the metadata of entries also requires execute permission on the folder.
        if rustix::fs::accessat(folder, c".", rustix::fs::Access::EXEC_OK, AtFlags::EACCESS).is_err() {
            grant_owner_rights(folder.as_fd(), LISTING_RIGHTS).ok();
        }
        let mut level =
            MeasuredLevel { identity: file_identity(&rustix::fs::fstat(folder)?), folders: Vec::new() };
        let mount = if self.rule.contains(ResolveFlags::NO_XDEV) { mount_id(folder, c".") } else { None };
        for entry in rustix::fs::Dir::read_from(folder)? {
            let Ok(entry) = entry else { break };
            let name = entry.file_name();
            if is_dot(name) || self.used > self.enough {
                continue;
            }
            let Ok(stat) = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            // A single file can be a mount point too: the sandbox bind-mounts its own program into the `/tmp` of a run.
            if mount.is_some() && mount_id(folder, name) != mount {
                continue;
            }
            self.used = self.used.saturating_add(disk_bytes(&stat));
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                level.folders.push(name.to_owned());
            }
        }
        self.levels.push(level);
        Ok(())
    }
}

/// Returns the ID of the mount that contains an entry of a folder, or `None` if the kernel does not report it.
fn mount_id(folder: &OwnedFd, name: &CStr) -> Option<u64> {
    let stat = rustix::fs::statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID).ok()?;
    (stat.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(stat.stx_mnt_id)
}

/// Returns whether a name refers to the folder itself or to its parent.
pub fn is_dot(name: &CStr) -> bool {
    name == c"." || name == c".."
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn used_bytes(folder: &Path, enough: u64) -> u64 {
        measure_tree(folder, enough, MountRule::Enter)
    }

    #[test]
    fn measured_size_covers_subfolders_and_skips_symlinks() {
        let room = tempfile::tempdir().unwrap();
        let (inside, outside) = (room.path().join("ws"), room.path().join("big"));
        fs::create_dir_all(inside.join("a/b")).unwrap();
        fs::write(&outside, vec![1; 1_000_000]).unwrap();
        fs::write(inside.join("a/b/file"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        let used = used_bytes(&inside, u64::MAX);
        assert!((100_000..200_000).contains(&used), "{used}");
        assert!(used_bytes(&inside, 1_000) > 1_000);
    }

    #[test]
    fn files_below_very_long_paths_are_measured() {
        let room = tempfile::tempdir().unwrap();
        let name = "d".repeat(200);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut at = rustix::fs::openat(CWD, room.path(), flags, Mode::empty()).unwrap();
        for _ in 0..40 {
            rustix::fs::mkdirat(&at, name.as_str(), Mode::from_raw_mode(0o700)).unwrap();
            at = rustix::fs::openat(&at, name.as_str(), flags, Mode::empty()).unwrap();
        }
        let flags = OFlags::WRONLY | OFlags::CREATE;
        let file = rustix::fs::openat(&at, "file", flags, Mode::from_raw_mode(0o600)).unwrap();
        rustix::io::write(&file, &[1; 300_000]).unwrap();
        fs::write(room.path().join("beside"), vec![1; 100_000]).unwrap();
        let used = used_bytes(room.path(), u64::MAX);
        assert!((400_000..700_000).contains(&used), "{used}");
    }
}
