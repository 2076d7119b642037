//! A handle to an open folder. Each entry is opened relative to a handle, one name at a time, without following
//! symbolic links. The opened file is therefore the file that was checked, even if a process puts a symbolic link in
//! its place in between.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat};

/// Maximum number of entries read per folder, so that a folder with millions of entries cannot exhaust memory.
pub const MAX_ENTRIES: usize = 20_000;

/// Name prefix of a file while it is written, before it replaces its target. Folder listings omit such files.
pub(crate) const TEMPORARY_PREFIX: &str = ".polyclaw-";
const TEMPORARY_SUFFIX: &str = ".tmp";
/// Permission bits. Set-user-ID and similar bits are never carried over to another file.
const PERMISSION_BITS: u32 = 0o777;
pub(crate) const PRIVATE_FOLDER_MODE: u32 = 0o700;

pub(crate) fn is_temporary(name: &OsStr) -> bool {
    let (name, end) = (name.as_bytes(), TEMPORARY_SUFFIX.as_bytes());
    name.starts_with(TEMPORARY_PREFIX.as_bytes()) && name.ends_with(end)
}

#[derive(Debug)]
pub struct FolderHandle(OwnedFd);

/// Identifies the folder of a handle on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderIdentity {
    pub device: u64,
    pub inode: u64,
}

pub struct FolderEntry {
    pub name: OsString,
    pub kind: FileType,
    pub size: u64,
}

pub struct FolderEntries {
    /// Sorted by name.
    pub found: Vec<FolderEntry>,
    pub has_more: bool,
}

/// With these flags, the kernel does not resolve a path outside the folder and does not follow a symbolic link.
const BENEATH_FLAGS: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
/// Describes these flags in the record of a call.
pub const RESOLUTION_FACT: &str = "openat2: beneath, no_symlinks, no_magiclinks";

fn only_regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

impl FolderHandle {
    pub fn open(path: &Path) -> io::Result<Self> {
        // The path contains no symbolic links. A symbolic link that was added since then is not followed.
        let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        Ok(Self(rustix::fs::openat2(CWD, path, folder_flags(), Mode::empty(), links)?))
    }

    pub fn open_child(&self, name: &OsStr) -> io::Result<Self> {
        Ok(Self(rustix::fs::openat2(&self.0, name, folder_flags(), Mode::empty(), BENEATH_FLAGS)?))
    }

    /// Opens a folder that the operator specifies. Symbolic links in its path belong to the operator and are followed.
    /// Agents must not have write access to any part of that path.
    pub fn open_base(path: &Path) -> io::Result<Self> {
        Self::open(&path.canonicalize()?)
    }

    /// Opens the folder `at`, which must be `base` or a folder below it. Symbolic links below `base` are not followed.
    pub fn open_below(base: &Path, at: &Path) -> io::Result<Self> {
        let inside = at.strip_prefix(base).map_err(|_| io::ErrorKind::NotFound)?;
        Self::open_base(base)?.open_relative(inside)
    }

    /// Opens a folder below this one. The empty path refers to this folder.
    pub fn open_relative(&self, inside: &Path) -> io::Result<Self> {
        let names = plain_names(inside)?;
        names.into_iter().try_fold(self.try_clone()?, |folder, name| folder.open_child(name))
    }

    /// Same as `open_relative`, but creates missing folders with permissions for their owner only.
    pub fn open_or_create_relative(&self, inside: &Path) -> io::Result<Self> {
        let names = plain_names(inside)?;
        names
            .into_iter()
            .try_fold(self.try_clone()?, |folder, name| folder.open_or_create_private_child(name))
    }

    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    pub fn identity(&self) -> io::Result<FolderIdentity> {
        let stat = rustix::fs::fstat(&self.0)?;
        Ok(FolderIdentity { device: stat.st_dev, inode: stat.st_ino })
    }

    /// Opens a child folder, or creates it if it does not exist. A new entry is durable when this method returns.
    pub fn open_or_create_child(&self, name: &OsStr) -> io::Result<Self> {
        if self.create_folder(name, 0o777)? {
            self.sync()?;
        }
        self.open_child(name)
    }

    /// Same as `open_or_create_child`, but creates the folder with permissions for its owner only.
    pub fn open_or_create_private_child(&self, name: &OsStr) -> io::Result<Self> {
        if self.create_folder(name, PRIVATE_FOLDER_MODE)? {
            self.sync()?;
        }
        self.open_child(name)
    }

    /// Creates a folder. Returns `false` if the name already exists.
    pub(crate) fn create_folder(&self, name: &OsStr, mode: u32) -> io::Result<bool> {
        match rustix::fs::mkdirat(&self.0, name, Mode::from_raw_mode(mode)) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the metadata of an entry, or `None` if it does not exist. A symbolic link is not followed.
    pub fn stat(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file for reading without blocking, because a named pipe without a writer would block forever.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat2(&self.0, name, flags, Mode::empty(), BENEATH_FLAGS)?))
    }

    /// Opens a regular file for reading. Fails for other file types, because a device may have side effects and a pipe
    /// may block.
    pub fn open_regular_file(&self, name: &OsStr) -> io::Result<File> {
        only_regular(self.open_file(name)?)
    }

    /// Opens a child folder. Grants its owner permission to list it if the owner lacks it.
    pub(crate) fn open_owned_child(&self, name: &OsStr) -> io::Result<Self> {
        polyclaw_tree::open_owned_folder(self.0.as_fd(), name).map(Self)
    }

    /// Opens a regular file. Grants its owner read permission if the owner lacks it.
    pub(crate) fn open_owned_file(&self, name: &OsStr) -> io::Result<File> {
        only_regular(polyclaw_tree::open_owned_file(self.0.as_fd(), name)?)
    }

    /// Returns the content of a regular file. Fails if the file is larger than `most` bytes.
    pub fn read_file(&self, name: &OsStr, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open_regular_file(name)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > most {
            true => {
                Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {most} bytes")))
            }
            false => Ok(bytes),
        }
    }

    /// Creates a file for reading and writing. Fails if the name already exists, even as a symbolic link.
    pub fn create_file(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode & PERMISSION_BITS);
        Ok(File::from(rustix::fs::openat(&self.0, name, flags, mode)?))
    }

    pub fn read_link(&self, name: &OsStr) -> io::Result<OsString> {
        let target = rustix::fs::readlinkat(&self.0, name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()))
    }

    pub fn create_link(&self, target: &OsStr, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.0, name)?)
    }

    /// Returns the names in the folder in no particular order. A name that is added or removed during the iteration may
    /// be missing or appear twice.
    pub fn names(&self) -> io::Result<impl Iterator<Item = io::Result<OsString>> + use<>> {
        let names = rustix::fs::Dir::read_from(&self.0)?.map(|entry| {
            let entry = entry.map_err(io::Error::from)?;
            Ok(OsString::from_vec(entry.file_name().to_bytes().to_vec()))
        });
        Ok(names.filter(|name: &io::Result<OsString>| {
            !name.as_ref().is_ok_and(|name| name == "." || name == "..")
        }))
    }

    pub fn read_entries(&self) -> io::Result<FolderEntries> {
        let mut found = Vec::new();
        let mut has_more = false;
        for entry in rustix::fs::Dir::read_from(&self.0)? {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            if name == "." || name == ".." || is_temporary(&name) {
                continue;
            }
            if found.len() == MAX_ENTRIES {
                has_more = true;
                break;
            }
            // Skips entries that were removed after they were listed or cannot be accessed.
            if let Ok(Some(stat)) = self.stat(&name) {
                found.push(FolderEntry { name, kind: file_type(&stat), size: file_size(&stat) });
            }
        }
        found.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        Ok(FolderEntries { found, has_more })
    }

    /// Replaces or creates a file atomically. A reader sees either the old or the new content, even after a crash.
    pub fn replace_file(&self, name: &OsStr, content: &[u8]) -> io::Result<()> {
        // Only a regular file has a mode to keep. The mode of a symbolic link does not apply to a file.
        let old = self.stat(name)?.filter(|stat| file_type(stat) == FileType::RegularFile);
        let mode = old.map(|stat| Mode::from_raw_mode(stat.st_mode & PERMISSION_BITS));
        let (temporary, mut file) = self.create_temporary()?;
        let written = (|| {
            if let Some(mode) = mode {
                rustix::fs::fchmod(&file, mode)?;
            }
            file.write_all(content)?;
            file.sync_all()?;
            rustix::fs::renameat(&self.0, &temporary, &self.0, name)?;
            self.sync()
        })();
        if written.is_err() {
            rustix::fs::unlinkat(&self.0, &temporary, AtFlags::empty()).ok();
        }
        written
    }

    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?;
        self.sync()
    }

    /// Removes an empty folder.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Creates a file with a unique temporary name. Skips existing names, left by a crash or currently in use.
    fn create_temporary(&self) -> io::Result<(String, File)> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let process = std::process::id();
        for number in 0..10_000 {
            let name = format!("{TEMPORARY_PREFIX}{process}-{number}{TEMPORARY_SUFFIX}");
            match rustix::fs::openat(&self.0, name.as_str(), flags, Mode::from_raw_mode(0o666)) {
                Ok(fd) => return Ok((name, File::from(fd))),
                Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::other("too many temporary files were left behind"))
    }

    fn sync(&self) -> io::Result<()> {
        match rustix::fs::fsync(&self.0) {
            // Some file systems cannot sync a folder and offer no alternative.
            Ok(()) | Err(rustix::io::Errno::INVAL) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns whether opening an entry failed because of a symbolic link.
pub fn is_link_refusal(error: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP)
}

/// Returns the names of a relative path. Rejects `..`, because its target depends on symbolic links.
fn plain_names(path: &Path) -> io::Result<Vec<&OsStr>> {
    let names = path.components().filter(|part| *part != Component::CurDir).map(|part| match part {
        Component::Normal(name) => Ok(name),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "the path leads out of its folder")),
    });
    names.collect()
}

pub fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

pub fn file_size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

pub fn describe_file_type(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a folder",
        FileType::Symlink => "a symbolic link that cannot be followed",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "of an unknown kind",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn replaced_file_keeps_mode_and_leaves_no_temporary_file() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run.sh");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
        let folder = FolderHandle::open(home.path()).unwrap();
        folder.replace_file(OsStr::new("run.sh"), b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(folder.read_entries().unwrap().found.len(), 1);
    }

    #[test]
    fn leftover_temporary_file_does_not_block_replace() {
        let home = tempfile::tempdir().unwrap();
        let folder = FolderHandle::open(home.path()).unwrap();
        let (left, _) = folder.create_temporary().unwrap();
        folder.replace_file(OsStr::new("a"), b"new").unwrap();
        assert!(home.path().join(left).exists());
        assert_eq!(std::fs::read(home.path().join("a")).unwrap(), b"new");
    }

    #[test]
    fn symlinks_and_pipes_are_not_read() {
        let (home, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink(outside.path(), home.path().join("folder")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), home.path().join("file")).unwrap();
        rustix::fs::mknodat(CWD, home.path().join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        std::fs::write(home.path().join("long"), "12345").unwrap();
        let folder = FolderHandle::open_base(home.path()).unwrap();
        for inside in ["folder", "..", "folder/..", "/etc"] {
            assert!(folder.open_relative(Path::new(inside)).is_err(), "{inside}");
        }
        let read = |name: &str, most| folder.read_file(OsStr::new(name), most);
        assert_eq!(read("pipe", 10).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(read("long", 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read("missing", 4).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(read("file", 10).is_err());
        assert_eq!(read("long", 5).unwrap(), b"12345");
    }

    #[test]
    fn failed_replace_removes_its_temporary_file() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("taken")).unwrap();
        let folder = FolderHandle::open(home.path()).unwrap();
        assert!(folder.replace_file(OsStr::new("taken"), b"new").is_err());
        assert_eq!(folder.read_entries().unwrap().found.len(), 1);
    }
}
