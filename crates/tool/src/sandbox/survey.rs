//! What an MCP server may read: the machine, but for what is hidden. Landlock knows exceptions to "nothing" only, so the
//! folders above something hidden are opened entry by entry.

use std::path::{Path, PathBuf};

use super::plan::SandboxPlan;

/// Not part of the survey: secrets of services, other people's temporary files, and what has rules of its own.
const SKIPPED_FOLDERS: [&str; 7] = ["/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/tmp"];
/// More entries beside something hidden are not opened: each is a rule that the kernel keeps.
const MAX_SURVEYED_ENTRIES: usize = 4_096;

pub fn readable_except_hidden(plan: &SandboxPlan) -> Vec<PathBuf> {
    let left_out = SKIPPED_FOLDERS.iter().map(PathBuf::from);
    let hidden: Vec<PathBuf> = plan.hidden.iter().map(|hidden| hidden.path.clone()).chain(left_out).collect();
    let mut found = Vec::new();
    collect_readable(Path::new("/"), &hidden, &mut found);
    found
}

/// Opens what has nothing hidden below it, and looks into what has.
fn collect_readable(folder: &Path, hidden: &[PathBuf], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        // A link is opened by what it leads to.
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
    fn everything_beside_what_is_hidden_is_found() {
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
