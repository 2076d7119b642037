//! Resolves paths and confines them to the workspace.
//!
//! Two steps, each safe alone. [`resolve_path`] resolves `..` and links and rejects results outside the workspace.
//! Opening then walks the result from the workspace down without following any link, so nothing can be swapped in
//! between.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::FileType;

use crate::error::{Error, Result};
use crate::quota::WorkspaceQuotas;
use polyclaw_folder::{self as folder, FolderHandle};

const MAX_PATH_LEN: usize = 4096;

/// A path below the workspace, which may not exist yet.
#[derive(Debug)]
pub struct WorkspacePath {
    root: PathBuf,
    /// Relative to the root; plain names only.
    inside: PathBuf,
    /// As the model wrote it, for messages.
    display: String,
}

/// Serializes changes: otherwise an edit could undo a concurrent write. The holder may check the quota.
#[derive(Default)]
pub struct WorkspaceWriteLock(Mutex<WorkspaceQuotas>);

impl WorkspaceWriteLock {
    pub fn lock(&self) -> MutexGuard<'_, WorkspaceQuotas> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the root of a workspace. It is created when it is first needed, accessible only by its owner, because an agent's
/// own folder exists only as a name in its spec.
///
/// The engine resolves the symbolic links of a workspace path when it reads the config. A link in the path now was created
/// later and is not followed.
pub fn ensure_root(workspace: &Path) -> io::Result<PathBuf> {
    match FolderHandle::open(workspace) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_root(workspace)?;
            // Where a disk is not mounted, this is an empty folder on another one.
            tracing::warn!(folder = %workspace.display(), "workspace folder did not exist; created it");
        }
        opened => drop(opened?),
    }
    Ok(workspace.components().collect())
}

fn create_root(workspace: &Path) -> io::Result<()> {
    let there = workspace.ancestors().find_map(|above| match FolderHandle::open(above) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        opened => Some((above, opened)),
    });
    let (above, opened) = there.ok_or(io::ErrorKind::NotFound)?;
    let missing = workspace.strip_prefix(above).map_err(io::Error::other)?;
    opened?.open_or_create_relative(missing).map(drop)
}

/// Resolves `path`, relative to the workspace or absolute. Fails if it leads outside.
pub fn resolve_path(workspace: &Path, path: &str) -> Result<WorkspacePath> {
    check_path_text(path)?;
    let root = ensure_root(workspace).map_err(Error::Workspace)?;
    let real = resolve_existing(&root.join(path))
        .ok_or_else(|| Error::path(path, "contains '..' after a folder that does not exist"))?;
    let inside = real.strip_prefix(&root).map_err(|_| Error::Outside(path.to_owned()))?.to_owned();
    Ok(WorkspacePath { root, inside, display: path.to_owned() })
}

/// Refuses what no path can be.
pub fn check_path_text(path: &str) -> Result<()> {
    if path.contains('\0') || path.len() > MAX_PATH_LEN {
        let start = path.chars().take(80).collect::<String>().replace('\0', "\u{fffd}");
        return Err(Error::path(&start, "is not a valid path: too long, or it contains a zero byte"));
    }
    Ok(())
}

/// The real path of the deepest part that exists, and the missing names below it. `None` if those names hold a
/// `..`: what it would lead to is not decided yet.
fn resolve_existing(path: &Path) -> Option<PathBuf> {
    let mut existing = path;
    let mut missing: Vec<&OsStr> = Vec::new();
    loop {
        // Every failure counts as missing, so that an error reveals nothing about files outside.
        if let Ok(mut real) = existing.canonicalize() {
            real.extend(missing.iter().rev());
            return Some(real);
        }
        let Some(Component::Normal(name)) = existing.components().next_back() else { return None };
        missing.push(name);
        existing = existing.parent()?;
    }
}

impl WorkspacePath {
    pub fn display_path(&self) -> &str {
        &self.display
    }

    /// Returns the workspace itself, without links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path without links, for programs that take paths. Does not protect against a later swap.
    pub fn full_path(&self) -> PathBuf {
        self.root.join(&self.inside)
    }

    /// Returns the path relative to the workspace, for output. Empty for the workspace itself.
    pub fn relative_path(&self) -> &Path {
        &self.inside
    }

    /// Returns the current size of the file, or 0 if there is none.
    pub fn file_size(&self) -> u64 {
        let Some(name) = self.inside.file_name() else { return 0 };
        let stat = self.open_parent().ok().and_then(|parent| parent.stat(name).ok().flatten());
        stat.map_or(0, |stat| folder::file_size(&stat))
    }

    /// Returns the current type of the path.
    pub fn file_type(&self) -> Result<FileType> {
        let Some(name) = self.inside.file_name() else { return Ok(FileType::Directory) };
        let parent = self.open_parent()?;
        let stat = parent.stat(name).map_err(|source| self.io_error(source))?;
        stat.map(|stat| folder::file_type(&stat)).ok_or_else(|| self.io_error(io::ErrorKind::NotFound))
    }

    pub fn open_folder(&self) -> Result<FolderHandle> {
        self.expect_type(FileType::Directory)?;
        let (root, names) = self.open_root()?;
        names.iter().try_fold(root, |at, name| at.open_child(name)).map_err(|source| self.io_error(source))
    }

    /// Opens a regular file for reading. Rejects other types: opening a device may have effects, and a pipe may block.
    pub fn open_file(&self) -> Result<(File, u64)> {
        self.expect_type(FileType::RegularFile)?;
        let name = self.inside.file_name().unwrap_or_default();
        let file = self.open_parent()?.open_file(name).map_err(|source| self.io_error(source))?;
        let meta = file.metadata().map_err(|source| self.io_error(source))?;
        if !meta.is_file() {
            return Err(Error::Kind {
                path: self.display.clone(),
                found: "no longer a file",
                wanted: "a file",
            });
        }
        Ok((file, meta.len()))
    }

    /// Writes the whole file and creates missing folders. Returns true if the file is new.
    pub fn replace_file(&self, content: &[u8]) -> Result<bool> {
        let (root, mut names) = self.open_root()?;
        let Some(name) = names.pop() else { return self.expect_type(FileType::RegularFile).map(|()| false) };
        let made = names.iter().try_fold(root, |at, name| at.open_or_create_child(name));
        let parent = made.map_err(|source| self.io_error(source))?;
        let old = parent.stat(&name).map_err(|source| self.io_error(source))?;
        if let Some(stat) = &old {
            self.check_type(folder::file_type(stat), FileType::RegularFile)?;
            if stat.st_mode & 0o222 == 0 {
                return Err(Error::path(&self.display, "is read-only"));
            }
        }
        parent.replace_file(&name, content).map_err(|source| self.io_error(source))?;
        Ok(old.is_none())
    }

    /// Removes a regular file.
    pub fn remove_file(&self) -> Result<()> {
        self.expect_type(FileType::RegularFile)?;
        let name = self.inside.file_name().unwrap_or_default();
        self.open_parent()?.remove_file(name).map_err(|source| self.io_error(source))
    }

    pub fn io_error(&self, source: impl Into<io::Error>) -> Error {
        Error::io(&self.display, source)
    }

    fn open_root(&self) -> Result<(FolderHandle, Vec<OsString>)> {
        let root = FolderHandle::open(&self.root).map_err(Error::Workspace)?;
        Ok((root, self.inside.iter().map(OsStr::to_owned).collect()))
    }

    fn open_parent(&self) -> Result<FolderHandle> {
        let (root, mut names) = self.open_root()?;
        names.pop();
        names.iter().try_fold(root, |at, name| at.open_child(name)).map_err(|source| self.io_error(source))
    }

    fn expect_type(&self, wanted: FileType) -> Result<()> {
        self.check_type(self.file_type()?, wanted)
    }

    fn check_type(&self, found: FileType, wanted: FileType) -> Result<()> {
        if found == wanted {
            return Ok(());
        }
        let (found, wanted) = (folder::describe_file_type(found), folder::describe_file_type(wanted));
        Err(Error::Kind { path: self.display.clone(), found, wanted })
    }
}

#[cfg(test)]
mod tests;
