//! Disk usage of workspaces. File tools check it before they write; the supervisor checks it while a program runs.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat};

use crate::error::{Error, Result};
use crate::workspace::WorkspacePath;

const MIB: u64 = 1024 * 1024;
const DISK_BLOCK_BYTES: u64 = 512;
/// Minimum size counted per file, because there could be millions of empty ones.
const MIN_FILE_BYTES: u64 = 4096;
const MAX_MEASURE_DURATION: Duration = Duration::from_secs(2);
/// How long a measurement is reused: the longer of this and a multiple of the time it took.
const MIN_MEASURE_TTL: Duration = Duration::from_secs(2);
const TTL_PER_MEASURE_TIME: u32 = 50;

/// Maximum repeats of a measurement because a folder was moved meanwhile.
const MOST_WALKS: u32 = 3;

/// Returns the bytes on disk below a folder, without following links. Stops when the sum exceeds `enough` or on a
/// timeout, because a workspace may be a whole disk.
pub fn used_bytes(folder: &Path, enough: u64) -> u64 {
    measure(folder, enough, ResolveFlags::empty())
}

/// Like [`used_bytes`], without mounts below the folder: a private `/tmp` may contain the workspace as a mount.
pub fn used_bytes_of_mount(folder: &Path, enough: u64) -> u64 {
    measure(folder, enough, ResolveFlags::NO_XDEV)
}

fn measure(folder: &Path, enough: u64, rule: ResolveFlags) -> u64 {
    let end = Instant::now() + MAX_MEASURE_DURATION;
    let mut most = 0;
    for _ in 0..MOST_WALKS {
        let mut walk = Walk { used: 0, enough, end, rule, levels: Vec::new() };
        let is_whole = walk.all(folder).is_ok();
        most = walk.used.max(most);
        if is_whole || most > enough {
            break;
        }
    }
    most
}

/// Walks the tree with one open folder at a time. A path from the top may exceed the kernel's limit, and one descriptor
/// per level may exceed the process's.
struct Walk {
    used: u64,
    enough: u64,
    end: Instant,
    rule: ResolveFlags,
    levels: Vec<Level>,
}

/// A folder above the open one: its id, and its subfolders that are still to be visited.
struct Level {
    id: (u64, u64),
    folders: Vec<CString>,
}

impl Walk {
    fn all(&mut self, folder: &Path) -> rustix::io::Result<()> {
        let Ok(mut at) = rustix::fs::openat(CWD, folder, folder_flags(), Mode::empty()) else {
            return Ok(());
        };
        self.enter(&at)?;
        while let Some(level) = self.levels.last_mut().filter(|_| Instant::now() < self.end) {
            if self.used > self.enough {
                break;
            }
            if let Some(name) = level.folders.pop() {
                let flags = folder_flags() | OFlags::NOFOLLOW;
                // Gone since it was listed, or not accessible.
                let Ok(child) = rustix::fs::openat2(&at, name, flags, Mode::empty(), self.rule) else {
                    continue;
                };
                self.enter(&child)?;
                at = child;
                continue;
            }
            self.levels.pop();
            if let Some(level) = self.levels.last() {
                at = rustix::fs::openat(&at, c"..", folder_flags(), Mode::empty())?;
                if id(&rustix::fs::fstat(&at)?) != level.id {
                    return Err(rustix::io::Errno::STALE);
                }
            }
        }
        Ok(())
    }

    /// Counts the entries of a folder and records its subfolders.
    fn enter(&mut self, folder: &OwnedFd) -> rustix::io::Result<()> {
        let mut level = Level { id: id(&rustix::fs::fstat(folder)?), folders: Vec::new() };
        for entry in rustix::fs::Dir::read_from(folder)? {
            let Ok(entry) = entry else { break };
            let name = entry.file_name();
            if name == c"." || name == c".." || self.used > self.enough {
                continue;
            }
            let Ok(stat) = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            self.used = self.used.saturating_add(room(&stat));
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                level.folders.push(name.to_owned());
            }
        }
        self.levels.push(level);
        Ok(())
    }
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
}

/// Identifies a file on this machine.
pub fn id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// Returns the disk space of a file.
pub fn room(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(DISK_BLOCK_BYTES).max(MIN_FILE_BYTES)
}

/// The last measurement of each workspace, plus what was written since.
#[derive(Default)]
pub struct WorkspaceQuotas(HashMap<PathBuf, UsageMeasure>);

struct UsageMeasure {
    used: u64,
    at: Instant,
    took: Duration,
}

impl WorkspaceQuotas {
    /// Rejects a file of `size` bytes if its workspace would exceed `limit_mb`.
    pub fn admit_file(&mut self, place: &WorkspacePath, size: u64, limit_mb: u64) -> Result<()> {
        let limit = limit_mb.saturating_mul(MIB);
        let growth = size.saturating_sub(place.file_size());
        if growth == 0 {
            return Ok(());
        }
        let root = place.root();
        if self.measure_used(root, limit).saturating_add(growth) > limit {
            // Files may have been removed since the last measurement.
            self.0.remove(root);
            if self.measure_used(root, limit).saturating_add(growth) > limit {
                return Err(Error::Quota { path: place.display_path().to_owned(), limit_mb });
            }
        }
        if let Some(measure) = self.0.get_mut(root) {
            measure.used += growth;
        }
        Ok(())
    }

    fn measure_used(&mut self, root: &Path, limit: u64) -> u64 {
        let rest = |measure: &UsageMeasure| MIN_MEASURE_TTL.max(measure.took * TTL_PER_MEASURE_TIME);
        if let Some(measure) = self.0.get(root).filter(|measure| measure.at.elapsed() < rest(measure)) {
            return measure.used;
        }
        let at = Instant::now();
        let used = used_bytes(root, limit);
        self.0.insert(root.to_owned(), UsageMeasure { used, at, took: at.elapsed() });
        used
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn everything_below_a_folder_counts_and_links_lead_nowhere() {
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
    fn what_lies_deeper_than_a_path_can_be_long_counts() {
        let room = tempfile::tempdir().unwrap();
        let name = "d".repeat(200);
        let mut at = rustix::fs::openat(CWD, room.path(), folder_flags(), Mode::empty()).unwrap();
        for _ in 0..40 {
            rustix::fs::mkdirat(&at, name.as_str(), Mode::from_raw_mode(0o700)).unwrap();
            at = rustix::fs::openat(&at, name.as_str(), folder_flags(), Mode::empty()).unwrap();
        }
        let flags = OFlags::WRONLY | OFlags::CREATE;
        let file = rustix::fs::openat(&at, "file", flags, Mode::from_raw_mode(0o600)).unwrap();
        rustix::io::write(&file, &[1; 300_000]).unwrap();
        fs::write(room.path().join("beside"), vec![1; 100_000]).unwrap();
        let used = used_bytes(room.path(), u64::MAX);
        assert!((400_000..700_000).contains(&used), "{used}");
    }
}
