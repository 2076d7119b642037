//! The current commit of a workspace, read from git's own files. The git program is not run, because an agent can write
//! the repository's configuration, which can name programs to execute.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path};

/// Maximum number of bytes read from a file.
const MAX_GIT_FILE_BYTES: u64 = 1024 * 1024;

/// Returns `None` if the folder is not a repository or has no commit yet.
pub(crate) fn read_head_commit(workspace: &Path) -> Option<String> {
    let git = workspace.join(".git");
    fs::symlink_metadata(&git).ok().filter(fs::Metadata::is_dir)?;
    let head = read_regular_file(&git.join("HEAD"))?;
    let head = head.trim();
    let Some(name) = head.strip_prefix("ref:").map(str::trim) else { return parse_commit_id(head) };
    let is_plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    if !name.starts_with("refs/") || !is_plain {
        return None;
    }
    read_regular_file(&git.join(name))
        .and_then(|text| parse_commit_id(text.trim()))
        .or_else(|| find_packed_ref(&git, name))
}

fn find_packed_ref(git: &Path, name: &str) -> Option<String> {
    let listed = read_regular_file(&git.join("packed-refs"))?;
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

/// Reads a regular file only: no symlinks, pipes or devices.
fn read_regular_file(path: &Path) -> Option<String> {
    fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_GIT_FILE_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commit_is_found_loose_packed_and_detached() {
        let folder = std::env::temp_dir().join(format!("polyclaw-commits-{}", std::process::id()));
        let git = folder.join(".git");
        fs::create_dir_all(git.join("refs/heads")).unwrap();
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        assert_eq!(read_head_commit(&folder), None);
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(read_head_commit(&folder), None, "no commit yet");
        fs::write(git.join("packed-refs"), format!("# pack-refs\n{one} refs/heads/main\n")).unwrap();
        assert_eq!(read_head_commit(&folder), Some(one));
        fs::write(git.join("refs/heads/main"), format!("{two}\n")).unwrap();
        assert_eq!(read_head_commit(&folder), Some(two.clone()));
        fs::write(git.join("HEAD"), format!("{two}\n")).unwrap();
        assert_eq!(read_head_commit(&folder), Some(two));
        fs::write(git.join("HEAD"), "ref: refs/../../etc/passwd\n").unwrap();
        assert_eq!(read_head_commit(&folder), None);
        fs::remove_dir_all(folder).unwrap();
    }
}
