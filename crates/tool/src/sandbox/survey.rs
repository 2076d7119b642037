//! Finds what an MCP server may read: the machine except for hidden paths. Landlock can only allow paths, so folders
//! above a hidden path are opened entry by entry.

use std::path::{Path, PathBuf};

use super::plan::SandboxPlan;

/// Excluded: secrets of services, temporary files of others, and folders with rules of their own.
const SKIPPED_FOLDERS: [&str; 7] = ["/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/tmp"];
/// Maximum entries opened next to hidden paths, because each is a rule in the kernel.
const MAX_SURVEYED_ENTRIES: usize = 4_096;

pub fn readable_except_hidden(plan: &SandboxPlan) -> Vec<PathBuf> {
    let left_out = SKIPPED_FOLDERS.iter().map(PathBuf::from);
    let hidden: Vec<PathBuf> = plan.hidden.iter().map(|hidden| hidden.path.clone()).chain(left_out).collect();
    let mut found = Vec::new();
    collect_readable(Path::new("/"), &hidden, &mut found);
    found
}

/// Adds paths with nothing hidden below them and descends into the others.
fn collect_readable(folder: &Path, hidden: &[PathBuf], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        // A link is covered by the rule of its target.
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if is_link
            || hidden.iter().any(|hidden| path.starts_with(hidden))
            || found.len() >= MAX_SURVEYED_ENTRIES
        {
            continue;
        }
        if hidden.iter().any(|hidden| hidden.starts_with(&path)) {
            collect_readable(&path, hidden, found);
        } else {
            found.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collect_readable_skips_hidden_folders_and_symlinks() {
        let room = tempfile::tempdir().unwrap();
        let root = room.path().canonicalize().unwrap();
        for folder in ["a/b/secret", "a/b/open", "a/c", "d"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("a/b/secret"), root.join("link")).unwrap();
        let mut found = Vec::new();
        collect_readable(&root, &[root.join("a/b/secret")], &mut found);
        found.sort();
        assert_eq!(found, ["a/b/open", "a/c", "d"].map(|path| root.join(path)));
    }
}
