//! Looks at everything below a folder while an agent may change it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};

use crate::handle::{FolderHandle, file_type};

/// Folders in folders. One descriptor is open for each level; what lies deeper is not looked at.
const MAX_WALKED_DEPTH: usize = 128;

/// One entry on the way.
pub struct WalkedEntry<'a> {
    pub folder: &'a FolderHandle,
    pub name: &'a OsStr,
    /// Its path from the folder that the walk began in.
    pub inside: PathBuf,
    pub stat: Stat,
}

/// An open folder, and the folders in it that are still to be entered.
struct WalkLevel {
    folder: FolderHandle,
    inside: PathBuf,
    folders: Vec<OsString>,
}

/// Calls `visit` for everything below `root`, links not followed, until it fails. Folders that cannot be opened are
/// passed over.
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
