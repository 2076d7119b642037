//! Resolves a path to its current location.

use std::path::{Path, PathBuf};

/// Resolves symbolic links in the existing part of a path and appends the missing names unchanged. The result may only
/// be used to compare locations. Files and folders must be opened through a handle.
pub fn resolve_existing(path: &Path) -> PathBuf {
    let mut missing = PathBuf::new();
    for above in path.ancestors() {
        if let Ok(real) = above.canonicalize() {
            return if missing.as_os_str().is_empty() { real } else { real.join(missing) };
        }
        let Some(name) = above.file_name() else { break };
        missing =
            if missing.as_os_str().is_empty() { PathBuf::from(name) } else { Path::new(name).join(missing) };
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symlinks_are_resolved_and_missing_names_kept() {
        let room = tempfile::tempdir().unwrap();
        let root = room.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        assert_eq!(resolve_existing(&root.join("link")), root.join("real"));
        assert_eq!(resolve_existing(&root.join("link/a/b")), root.join("real/a/b"));
        assert_eq!(resolve_existing(Path::new("/missing/a")), Path::new("/missing/a"));
    }
}
