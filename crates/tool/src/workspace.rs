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
use crate::folder::{self, Folder};
use crate::quota::Quotas;

const LONGEST_PATH: usize = 4096;
const FOLDER_MODE: u32 = 0o700;

/// A place below the workspace, that may not exist yet.
#[derive(Debug)]
pub struct Place {
    root: PathBuf,
    /// From the root: plain names only.
    inside: PathBuf,
    /// As the model wrote it, for messages.
    shown: String,
}

/// One change at a time: an edit that does not see the write before it would undo it. Whoever passes may ask for room.
#[derive(Default)]
pub struct Turnstile(Mutex<Quotas>);

impl Turnstile {
    pub fn pass(&self) -> MutexGuard<'_, Quotas> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a workspace really is. It is made when it is first needed, for its owner alone: an agent's own folder is only
/// named in its spec, and nobody makes it by hand.
pub fn real(workspace: &Path) -> io::Result<PathBuf> {
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
pub fn locate(workspace: &Path, path: &str) -> Result<Place> {
    if path.contains('\0') || path.len() > LONGEST_PATH {
        let start = path.chars().take(80).collect::<String>().replace('\0', "\u{fffd}");
        return Err(Error::path(&start, "is not a usable path: too long, or it holds a zero byte"));
    }
    let root = real(workspace).map_err(Error::Workspace)?;
    let real = settle(&root.join(path)).ok_or_else(|| Error::path(path, "goes up from a missing folder"))?;
    let inside = real.strip_prefix(&root).map_err(|_| Error::Outside(path.to_owned()))?.to_owned();
    Ok(Place { root, inside, shown: path.to_owned() })
}

/// The real path of the deepest part that exists, and the missing names below it. `None` if those names hold a
/// `..`: what it would lead to is not decided yet.
fn settle(path: &Path) -> Option<PathBuf> {
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

impl Place {
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The workspace itself, without links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path without links, for a program that takes paths. Not proof against a later swap.
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.inside)
    }

    /// From the workspace, for output; the workspace itself is the empty path.
    pub fn inside(&self) -> &Path {
        &self.inside
    }

    /// Bytes of the file that is there now; none where there is no file.
    pub fn size(&self) -> u64 {
        let Some(name) = self.inside.file_name() else { return 0 };
        let stat = self.parent().ok().and_then(|parent| parent.stat(name).ok().flatten());
        stat.map_or(0, |stat| folder::size(&stat))
    }

    /// What is there now.
    pub fn kind(&self) -> Result<FileType> {
        let Some(name) = self.inside.file_name() else { return Ok(FileType::Directory) };
        let parent = self.parent()?;
        let stat = parent.stat(name).map_err(|source| self.failed(source))?;
        stat.map(|stat| folder::kind(&stat)).ok_or_else(|| self.failed(io::ErrorKind::NotFound))
    }

    pub fn open_folder(&self) -> Result<Folder> {
        self.expect(FileType::Directory)?;
        let (root, names) = self.start()?;
        names.iter().try_fold(root, |at, name| at.child(name)).map_err(|source| self.failed(source))
    }

    /// Opens a regular file for reading. Nothing else is opened: a device may act, a pipe may block.
    pub fn open_file(&self) -> Result<(File, u64)> {
        self.expect(FileType::RegularFile)?;
        let name = self.inside.file_name().unwrap_or_default();
        let file = self.parent()?.file(name).map_err(|source| self.failed(source))?;
        let meta = file.metadata().map_err(|source| self.failed(source))?;
        if !meta.is_file() {
            return Err(Error::Kind {
                path: self.shown.clone(),
                found: "no longer a file",
                wanted: "a file",
            });
        }
        Ok((file, meta.len()))
    }

    /// Writes the whole file, making the folders above it. True if the file is new.
    pub fn replace(&self, content: &[u8]) -> Result<bool> {
        let (root, mut names) = self.start()?;
        let Some(name) = names.pop() else { return self.expect(FileType::RegularFile).map(|()| false) };
        let made = names.iter().try_fold(root, |at, name| at.child_or_new(name));
        let parent = made.map_err(|source| self.failed(source))?;
        let old = parent.stat(&name).map_err(|source| self.failed(source))?;
        if let Some(stat) = &old {
            self.expect_found(folder::kind(stat), FileType::RegularFile)?;
            if stat.st_mode & 0o222 == 0 {
                return Err(Error::path(&self.shown, "is read-only"));
            }
        }
        parent.replace(&name, content).map_err(|source| self.failed(source))?;
        Ok(old.is_none())
    }

    /// Takes a regular file away.
    pub fn remove(&self) -> Result<()> {
        self.expect(FileType::RegularFile)?;
        let name = self.inside.file_name().unwrap_or_default();
        self.parent()?.remove(name).map_err(|source| self.failed(source))
    }

    pub fn failed(&self, source: impl Into<io::Error>) -> Error {
        Error::io(&self.shown, source)
    }

    fn start(&self) -> Result<(Folder, Vec<OsString>)> {
        let root = Folder::open(&self.root).map_err(Error::Workspace)?;
        Ok((root, self.inside.iter().map(OsStr::to_owned).collect()))
    }

    fn parent(&self) -> Result<Folder> {
        let (root, mut names) = self.start()?;
        names.pop();
        names.iter().try_fold(root, |at, name| at.child(name)).map_err(|source| self.failed(source))
    }

    fn expect(&self, wanted: FileType) -> Result<()> {
        self.expect_found(self.kind()?, wanted)
    }

    fn expect_found(&self, found: FileType, wanted: FileType) -> Result<()> {
        if found == wanted {
            return Ok(());
        }
        let (found, wanted) = (folder::describe(found), folder::describe(wanted));
        Err(Error::Kind { path: self.shown.clone(), found, wanted })
    }
}

#[cfg(test)]
mod tests;
