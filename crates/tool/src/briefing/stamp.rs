//! Detects whether a file changed without reading it.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use polyclaw_folder::FolderHandle;

/// Zero for what is not there.
pub type PathStamp = u64;

/// Nothing is read: what an agent may have put there since only makes another stamp.
pub fn path_stamp(path: &Path) -> PathStamp {
    std::fs::symlink_metadata(path).map_or(0, |meta| {
        stamp_of(&StampedStat {
            file: (meta.dev(), meta.ino(), meta.size()),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    })
}

/// The stamp of a file in an open folder, the same as by its path.
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
    /// Status changes too: a file can be given an old time of modification, but not an old time of that.
    changed: (i64, i64),
}

fn stamp_of(stat: &StampedStat) -> PathStamp {
    let mut hasher = DefaultHasher::new();
    stat.hash(&mut hasher);
    hasher.finish().max(1)
}
