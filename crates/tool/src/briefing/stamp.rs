//! Detects whether a file changed without reading it.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use polyclaw_folder::FolderHandle;

/// Zero for a missing file.
pub type PathStamp = u64;

/// The file is not read: if an agent has replaced it since, the stamp only differs.
pub fn path_stamp(path: &Path) -> PathStamp {
    std::fs::symlink_metadata(path).map_or(0, |meta| {
        stamp_of(&StampedStat {
            file: (meta.dev(), meta.ino(), meta.size()),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    })
}

/// Returns the stamp of a file in an open folder. It is the same as the stamp by path.
pub fn entry_stamp(folder: &FolderHandle, name: &OsStr) -> PathStamp {
    let Ok(Some(stat)) = folder.stat(name) else { return 0 };
    stamp_of(&StampedStat {
        file: (stat.st_dev, stat.st_ino, polyclaw_folder::file_size(&stat)),
        modified: (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or_default()),
        changed: (stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or_default()),
    })
}

#[derive(Hash)]
struct StampedStat {
    file: (u64, u64, u64),
    modified: (i64, i64),
    /// Includes the change time: the modification time of a file can be set back, its change time cannot.
    changed: (i64, i64),
}

fn stamp_of(stat: &StampedStat) -> PathStamp {
    let mut hasher = DefaultHasher::new();
    stat.hash(&mut hasher);
    hasher.finish().max(1)
}
