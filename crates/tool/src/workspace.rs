//! Finds what a path means and keeps it below the workspace.
//!
//! Two steps, each safe alone. [`locate`] resolves `..` and links and refuses what leads out. Opening then walks
//! the result from the workspace down, following no link at all, so nothing can be swapped in between.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::FileType;

use crate::error::{Error, Result};
use crate::folder::{self, FolderHandle};
use crate::quota::WorkspaceQuotas;

const MAX_PATH_LEN: usize = 4096;
const FOLDER_MODE: u32 = 0o700;

/// A place below the workspace, that may not exist yet.
#[derive(Debug)]
pub struct WorkspacePath {
    root: PathBuf,
    /// From the root: plain names only.
    inside: PathBuf,
    /// As the model wrote it, for messages.
    display: String,
}

/// One change at a time: an edit that does not see the write before it would undo it. Whoever passes may ask for room.
#[derive(Default)]
pub struct WorkspaceWriteLock(Mutex<WorkspaceQuotas>);

impl WorkspaceWriteLock {
    pub fn lock(&self) -> MutexGuard<'_, WorkspaceQuotas> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a workspace really is. It is made when it is first needed, for its owner alone: an agent's own folder is only
/// named in its spec, and nobody makes it by hand.
pub fn real_path(workspace: &Path) -> io::Result<PathBuf> {
    match workspace.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(workspace)?;
            // Where a disk is not mounted, this is an empty folder on another one.
            tracing::warn!(folder = %workspace.display(), "a workspace was not there, and is made");
            workspace.canonicalize()
        }
        found => found,
    }
}

/// Resolves `path`, relative to the workspace or absolute, and refuses it if it leads outside.
pub fn resolve_path(workspace: &Path, path: &str) -> Result<WorkspacePath> {
    if path.contains('\0') || path.len() > MAX_PATH_LEN {
        let start = path.chars().take(80).collect::<String>().replace('\0', "\u{fffd}");
        return Err(Error::path(&start, "is not a usable path: too long, or it holds a zero byte"));
    }
    let root = real_path(workspace).map_err(Error::Workspace)?;
    let real = resolve_existing(&root.join(path))
        .ok_or_else(|| Error::path(path, "goes up from a missing folder"))?;
    let inside = real.strip_prefix(&root).map_err(|_| Error::Outside(path.to_owned()))?.to_owned();
    Ok(WorkspacePath { root, inside, display: path.to_owned() })
}

/// The real path of the deepest part that exists, and the missing names below it. `None` if those names hold a
/// `..`: what it would lead to is not decided yet.
fn resolve_existing(path: &Path) -> Option<PathBuf> {
    let mut existing = path;
    let mut missing: Vec<&OsStr> = Vec::new();
    loop {
        // Every failure counts as missing, so that an answer tells nothing about files outside.
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

    /// The workspace itself, without links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path without links, for a program that takes paths. Not proof against a later swap.
    pub fn full_path(&self) -> PathBuf {
        self.root.join(&self.inside)
    }

    /// From the workspace, for output; the workspace itself is the empty path.
    pub fn relative_path(&self) -> &Path {
        &self.inside
    }

    /// Bytes of the file that is there now; none where there is no file.
    pub fn file_size(&self) -> u64 {
        let Some(name) = self.inside.file_name() else { return 0 };
        let stat = self.open_parent().ok().and_then(|parent| parent.stat(name).ok().flatten());
        stat.map_or(0, |stat| folder::file_size(&stat))
    }

    /// What is there now.
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

    /// Opens a regular file for reading. Nothing else is opened: a device may act, a pipe may block.
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

    /// Writes the whole file, making the folders above it. True if the file is new.
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

    /// Takes a regular file away.
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
