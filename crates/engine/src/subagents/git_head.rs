//! The commit a workspace stands at, read from git's own files. No git is run: an agent can write the repository's
//! settings, and those can name programs. An agent can write the files, too: no link is followed to one.

use std::ffi::OsStr;
use std::path::Path;

use polyclaw_folder::FolderHandle;

/// Maximum number of bytes read from a file.
const MAX_GIT_FILE_BYTES: u64 = 1024 * 1024;

/// Returns `None` if the folder is not a repository or has no commit yet.
pub(crate) fn read_head_commit(workspace: &Path) -> Option<String> {
    let git = FolderHandle::open_base(workspace).ok()?.open_child(OsStr::new(".git")).ok()?;
    let head = read_git_file(&git, Path::new("HEAD"))?;
    let head = head.trim();
    let Some(name) = head.strip_prefix("ref:").map(str::trim) else { return parse_commit_id(head) };
    if !name.starts_with("refs/") {
        return None;
    }
    read_git_file(&git, Path::new(name))
        .and_then(|text| parse_commit_id(text.trim()))
        .or_else(|| find_packed_ref(&git, name))
}

fn find_packed_ref(git: &FolderHandle, name: &str) -> Option<String> {
    let listed = read_git_file(git, Path::new("packed-refs"))?;
    listed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(_, of)| *of == name)
        .and_then(|(id, _)| parse_commit_id(id))
}

fn parse_commit_id(text: &str) -> Option<String> {
    let is_id = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| text.to_owned())
}

fn read_git_file(git: &FolderHandle, path: &Path) -> Option<String> {
    let folder = git.open_relative(path.parent()?).ok()?;
    String::from_utf8(folder.read_file(path.file_name()?, MAX_GIT_FILE_BYTES).ok()?).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

    use std::fs;

    use super::*;

    #[test]
    fn head_commit_is_read_from_loose_packed_and_detached_refs() {
        let room = tempfile::tempdir().unwrap();
        let folder = room.path();
        let git = folder.join(".git");
        fs::create_dir_all(git.join("refs/heads")).unwrap();
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        assert_eq!(read_head_commit(folder), None);
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(read_head_commit(folder), None, "no commit yet");
        fs::write(git.join("packed-refs"), format!("# pack-refs\n{one} refs/heads/main\n")).unwrap();
        assert_eq!(read_head_commit(folder), Some(one));
        fs::write(git.join("refs/heads/main"), format!("{two}\n")).unwrap();
        assert_eq!(read_head_commit(folder), Some(two.clone()));
        fs::write(git.join("HEAD"), format!("{two}\n")).unwrap();
        assert_eq!(read_head_commit(folder), Some(two));
        fs::write(git.join("HEAD"), "ref: refs/../../etc/passwd\n").unwrap();
        assert_eq!(read_head_commit(folder), None);
    }
}
