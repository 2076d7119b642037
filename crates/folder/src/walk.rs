//! Visits all entries below a folder while an agent may change it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};

use crate::handle::{FolderHandle, file_type};

/// Maximum depth of nested folders. One file descriptor is open per level. Deeper folders are not entered.
const MAX_WALKED_DEPTH: usize = 128;

/// An entry visited by the walk.
pub struct WalkedEntry<'a> {
    pub folder: &'a FolderHandle,
    pub name: &'a OsStr,
    /// The path relative to the root of the walk.
    pub inside: PathBuf,
    pub stat: Stat,
}

/// An open folder and its subfolders that are still to be entered.
struct WalkLevel {
    folder: FolderHandle,
    inside: PathBuf,
    folders: Vec<OsString>,
}

/// Calls `visit` for each entry below `root` until a call fails. Symbolic links are not followed. Folders that cannot
/// be opened are skipped.
pub fn walk_folder(
    root: FolderHandle,
    visit: &mut dyn FnMut(WalkedEntry<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut levels = vec![visit_level(root, PathBuf::new(), visit)?];
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.folders.pop() else {
            levels.pop();
            continue;
        };
        let inside = level.inside.join(&name);
        let child = level.folder.open_child(&name);
        if let Some(child) = child.ok().filter(|_| levels.len() < MAX_WALKED_DEPTH) {
            levels.push(visit_level(child, inside, visit)?);
        }
    }
    Ok(())
}

fn visit_level(
    folder: FolderHandle,
    inside: PathBuf,
    visit: &mut dyn FnMut(WalkedEntry<'_>) -> io::Result<()>,
) -> io::Result<WalkLevel> {
    let mut folders = Vec::new();
    for name in folder.names().into_iter().flatten().flatten() {
        let Ok(Some(stat)) = folder.stat(&name) else { continue };
        visit(WalkedEntry { folder: &folder, name: &name, inside: inside.join(Path::new(&name)), stat })?;
        if file_type(&stat) == FileType::Directory {
            folders.push(name);
        }
    }
    Ok(WalkLevel { folder, inside, folders })
}
