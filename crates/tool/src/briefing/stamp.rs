//! Detects whether a file changed without reading it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Zero if there is no file.
pub type PathStamp = u64;

pub fn path_stamp(path: &Path) -> PathStamp {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return 0 };
    let mut hasher = DefaultHasher::new();
    // Includes ctime: mtime can be set back, ctime cannot.
    let when = (meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec());
    (meta.dev(), meta.ino(), meta.size(), when).hash(&mut hasher);
    hasher.finish().max(1)
}
