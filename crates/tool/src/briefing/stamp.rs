//! Whether a file is still what it was, without reading it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Zero for what is not there.
pub type PathStamp = u64;

pub fn path_stamp(path: &Path) -> PathStamp {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return 0 };
    let mut hasher = DefaultHasher::new();
    // Status changes too: a file can be given an old time of modification, but not an old time of that.
    let when = (meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec());
    (meta.dev(), meta.ino(), meta.size(), when).hash(&mut hasher);
    hasher.finish().max(1)
}
