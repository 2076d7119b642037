//! What a tree takes of the disk.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, StatxFlags};
use rustix::io::Errno;

use crate::folder_access::{LISTING_RIGHTS, grant_owner_rights, open_subfolder};

const DISK_BLOCK_BYTES: u64 = 512;
/// An empty file takes room as well: there could be millions.
const MIN_FILE_BYTES: u64 = 4096;
const MAX_MEASURE_DURATION: Duration = Duration::from_secs(2);
/// A folder that is moved while it is measured is measured again, this often.
const MAX_WALKS: u32 = 3;

/// Whether what is mounted below a folder belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountRule {
    Enter,
    /// In a `/tmp` of its own a program finds its workspace again.
    Skip,
}

/// Bytes on disk below a folder, links not followed. Stops counting once it is more than `enough`, or takes too long: a
/// workspace may be a whole disk. Folders that are closed to their owner are opened for it: they would count nothing.
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

/// What a file takes of the disk.
pub fn disk_bytes(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(DISK_BLOCK_BYTES).max(MIN_FILE_BYTES)
}

/// Which file it is on this machine: device and inode.
pub fn file_identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// Goes down and up by one open folder at a time.
struct MeasuringWalk {
    used: u64,
    enough: u64,
    end: Instant,
    rule: ResolveFlags,
    levels: Vec<MeasuredLevel>,
}

/// A folder above the one that is open: which one it is, and those in it that are still to be entered.
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
                // Gone since it was listed, or another user's.
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

    /// Counts what is in a folder, and notes the folders in it.
    fn count_entries(&mut self, folder: &OwnedFd) -> rustix::io::Result<()> {
        // Reading needs the right to enter as well.
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
            // A single file can be a mount too: the sandbox binds its own program into the `/tmp` of a run.
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

/// Identifies the mount on which an entry of a folder lies. `None` if the kernel does not report it.
fn mount_id(folder: &OwnedFd, name: &CStr) -> Option<u64> {
    let stat = rustix::fs::statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID).ok()?;
    (stat.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(stat.stx_mnt_id)
}

/// The names of a folder itself and of the one above it.
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
