//! Copies a folder while an agent may change it. Source and destination are accessed through handles. A symbolic link
//! is therefore copied and never followed, even if the entry had another type a moment before.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use crate::handle::{FolderHandle, PRIVATE_FOLDER_MODE, file_type};

/// Maximum depth of nested folders. Three file descriptors are open per level.
const MAX_COPIED_DEPTH: usize = 128;
/// Maximum path length relative to the copied folder. The copy must be reachable by a path of at most 4,096 bytes.
const MAX_COPIED_PATH_BYTES: usize = 3_000;
const PRIVATE_FILE_MODE: u32 = 0o600;

/// An entry that now exists in the copy.
pub enum CopiedEntry<'a> {
    /// The new file, open for reading and positioned at its end.
    File(&'a mut File),
    Link(&'a OsStr),
}

/// An entry that could not be copied. The path is relative to the copied folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedEntry {
    pub path: PathBuf,
    pub reason: String,
}

type CopyObserver<'a> = &'a mut dyn FnMut(&Path, CopiedEntry<'_>) -> io::Result<()>;

/// Copies one folder. Symbolic links are copied as symbolic links. Pipes, sockets and devices are omitted. Files and
/// folders that their owner cannot read are made readable first. Any other entry that cannot be read, or exceeds the
/// depth or path limit, is skipped and reported, because an agent must not be able to prevent a backup.
pub struct FolderCopy<'a> {
    excluded: &'a dyn Fn(&Path) -> bool,
    on_copied: CopyObserver<'a>,
    prefix_depth: usize,
    prefix_bytes: usize,
    skipped: Vec<SkippedEntry>,
}

impl<'a> FolderCopy<'a> {
    /// `excluded` returns whether a folder is omitted, given its path relative to the copied folder. `on_copied` is
    /// called for each copied file and symbolic link. An error from `on_copied` ends the copy.
    pub fn new(excluded: &'a dyn Fn(&Path) -> bool, on_copied: CopyObserver<'a>) -> Self {
        Self { excluded, on_copied, prefix_depth: 0, prefix_bytes: 0, skipped: Vec::new() }
    }

    /// Applies the depth and path limits as if the folder were at `prefix`. A folder that contains the copy at `prefix`
    /// can then itself be copied completely.
    pub fn below(self, prefix: &Path) -> Self {
        let (prefix_depth, prefix_bytes) = (prefix.components().count(), prefix.as_os_str().len());
        Self { prefix_depth, prefix_bytes, ..self }
    }

    /// Copies the contents of `from` to `to` and returns the skipped entries. Only failures of the copy itself are
    /// errors.
    pub fn run(mut self, from: &FolderHandle, to: &FolderHandle) -> io::Result<Vec<SkippedEntry>> {
        let depth = self.prefix_depth;
        self.copy_entries((from, to), Path::new(""), depth)?;
        Ok(self.skipped)
    }

    fn copy_entries(
        &mut self,
        (from, to): (&FolderHandle, &FolderHandle),
        inside: &Path,
        depth: usize,
    ) -> io::Result<()> {
        let names = match from.names() {
            Ok(names) => names,
            Err(error) => return self.skip(inside, &error),
        };
        for name in names {
            match name {
                Ok(name) => self.copy_entry((from, to), (&name, &inside.join(&name)), depth)?,
                Err(error) => return self.skip(inside, &error),
            }
        }
        Ok(())
    }

    fn copy_entry(
        &mut self,
        (from, to): (&FolderHandle, &FolderHandle),
        (name, inside): (&OsStr, &Path),
        depth: usize,
    ) -> io::Result<()> {
        let stat = match from.stat(name) {
            Ok(Some(stat)) => stat,
            Ok(None) => return Ok(()),
            Err(error) => return self.skip(inside, &error),
        };
        if self.prefix_bytes + inside.as_os_str().len() > MAX_COPIED_PATH_BYTES || depth >= MAX_COPIED_DEPTH {
            return self.skip(inside, &io::Error::other("it lies too deep"));
        }
        match file_type(&stat) {
            FileType::Directory if (self.excluded)(inside) => Ok(()),
            FileType::Directory => match from.open_owned_child(name) {
                Ok(child) => {
                    to.create_folder(name, PRIVATE_FOLDER_MODE)?;
                    let copy = to.open_child(name)?;
                    self.copy_entries((&child, &copy), inside, depth + 1)
                }
                Err(error) => self.skip(inside, &error),
            },
            FileType::RegularFile => match from.open_owned_file(name) {
                Ok(file) => self.copy_file(file, to, (name, inside)),
                Err(error) => self.skip(inside, &error),
            },
            FileType::Symlink => match from.read_link(name) {
                Ok(target) => {
                    to.create_link(&target, name)?;
                    (self.on_copied)(inside, CopiedEntry::Link(&target))
                }
                Err(error) => self.skip(inside, &error),
            },
            _ => Ok(()),
        }
    }

    fn copy_file(
        &mut self,
        from: File,
        to: &FolderHandle,
        (name, inside): (&OsStr, &Path),
    ) -> io::Result<()> {
        let meta = from.metadata()?;
        let mut copy = to.create_file(name, PRIVATE_FILE_MODE)?;
        // Copies at most the size at opening, because another process may keep appending.
        io::copy(&mut from.take(meta.len()), &mut copy)?;
        copy.set_permissions(Permissions::from_mode(meta.permissions().mode() & 0o777))?;
        (self.on_copied)(inside, CopiedEntry::File(&mut copy))
    }

    /// Records a skipped entry. An entry that was removed after it was listed is not reported.
    fn skip(&mut self, inside: &Path, error: &io::Error) -> io::Result<()> {
        if error.kind() != io::ErrorKind::NotFound {
            self.skipped.push(SkippedEntry { path: inside.to_owned(), reason: error.to_string() });
        }
        Ok(())
    }
}

/// Copies one file or symbolic link. Fails for any other type of entry and for an entry that cannot be read.
pub fn copy_entry(from: (&FolderHandle, &OsStr), to: &FolderHandle) -> io::Result<()> {
    let mut is_copied = false;
    let mut note = |_: &Path, _: CopiedEntry<'_>| {
        is_copied = true;
        Ok(())
    };
    let (folder, name) = from;
    let mut copy = FolderCopy::new(&|_| true, &mut note);
    copy.copy_entry((folder, to), (name, Path::new(name)), 0)?;
    match copy.skipped.pop() {
        Some(skipped) => Err(io::Error::other(skipped.reason)),
        None if is_copied => Ok(()),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, Mode};

    use super::*;

    fn copy_all(from: &Path, to: &Path) -> (Vec<SkippedEntry>, Vec<PathBuf>) {
        let mut copied = Vec::new();
        let mut note = |path: &Path, _: CopiedEntry<'_>| {
            copied.push(path.to_owned());
            Ok(())
        };
        let (from, to) = (FolderHandle::open_base(from).unwrap(), FolderHandle::open_base(to).unwrap());
        let skipped = FolderCopy::new(&|path| path == Path::new("other"), &mut note).run(&from, &to).unwrap();
        copied.sort();
        (skipped, copied)
    }

    #[test]
    fn copy_keeps_symlinks_and_skips_pipes() {
        let room = tempfile::tempdir().unwrap();
        let (from, to) = (room.path().join("from"), room.path().join("to"));
        fs::create_dir_all(from.join("sub/empty")).unwrap();
        fs::create_dir_all(from.join("other")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(room.path().join("secret"), "secret").unwrap();
        fs::write(from.join("sub/run.sh"), "text").unwrap();
        fs::set_permissions(from.join("sub/run.sh"), Permissions::from_mode(0o4755)).unwrap();
        fs::write(from.join("other/file"), "text").unwrap();
        symlink("../secret", from.join("link")).unwrap();
        rustix::fs::mknodat(CWD, from.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let (skipped, copied) = copy_all(&from, &to);
        assert_eq!(skipped, []);
        assert_eq!(copied, [Path::new("link"), Path::new("sub/run.sh")]);
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("../secret"));
        assert_eq!(fs::metadata(to.join("sub/run.sh")).unwrap().permissions().mode() & 0o7777, 0o755);
        assert!(to.join("sub/empty").is_dir() && !to.join("other").exists() && !to.join("pipe").exists());
    }

    #[test]
    fn copy_reports_and_skips_too_deep_folders() {
        let room = tempfile::tempdir().unwrap();
        let (from, to) = (room.path().join("from"), room.path().join("to"));
        fs::create_dir_all(&from).unwrap();
        fs::create_dir(&to).unwrap();
        for name in ["d", &"n".repeat(200)] {
            let mut at = FolderHandle::open_base(&from).unwrap();
            for _ in 0..400 {
                at = at.open_or_create_child(OsStr::new(name)).unwrap();
            }
        }
        fs::write(from.join("file"), "text").unwrap();
        let (skipped, copied) = copy_all(&from, &to);
        assert_eq!(copied, [Path::new("file")]);
        assert_eq!(skipped.len(), 2);
        assert!(skipped.iter().all(|one| one.reason == "it lies too deep"), "{skipped:?}");
    }
}
