//! An open folder. Everything is opened relative to a handle, one name at a time, never through a link. So the file
//! that was checked is the one that is opened, even if someone puts a link in its place in between.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat};

/// Maximum entries per folder, so that a folder with millions of entries cannot fill the memory.
pub const MAX_ENTRIES: usize = 20_000;

/// Name parts of temporary files during a write. They are hidden from listings.
const TEMPORARY_PREFIX: &str = ".polyclaw-";
const TEMPORARY_SUFFIX: &str = ".tmp";

fn is_temporary(name: &OsStr) -> bool {
    let (name, end) = (name.as_bytes(), TEMPORARY_SUFFIX.as_bytes());
    name.starts_with(TEMPORARY_PREFIX.as_bytes()) && name.ends_with(end)
}

/// Temporary files older than this are abandoned, because a write takes moments.
const MAX_TEMPORARY_AGE: Duration = Duration::from_secs(600);
/// Maximum entries visited per sweep.
const MAX_SWEPT_ENTRIES: usize = 500_000;

/// Removes temporary files of killed writers below a workspace. Returns their number.
pub fn sweep_temporary(workspace: &Path) -> usize {
    let (mut removed, mut seen, mut open) = (0, 0, vec![workspace.to_owned()]);
    while let Some(folder) = open.pop().filter(|_| seen < MAX_SWEPT_ENTRIES) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            seen += 1;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() && is_left_behind(&entry) && std::fs::remove_file(entry.path()).is_ok() {
                removed += 1;
            }
        }
    }
    removed
}

/// Whether the writer is gone. Workers have their own process ids, so their leftovers are recognised by age.
fn is_left_behind(entry: &std::fs::DirEntry) -> bool {
    let name = entry.file_name();
    if !is_temporary(&name) {
        return false;
    }
    let name = name.to_string_lossy();
    let writer = name.strip_prefix(TEMPORARY_PREFIX).and_then(|rest| rest.split('-').next());
    let is_gone = writer.is_some_and(|pid| !Path::new("/proc").join(pid).exists());
    let age = entry.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
    is_gone || age.is_some_and(|age| age > MAX_TEMPORARY_AGE)
}

pub struct FolderHandle(OwnedFd);

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

/// The kernel guarantees that nothing above is reached and no link is followed.
const BENEATH_FLAGS: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
/// The flags in words, for the record of a call.
pub const RESOLUTION_FACT: &str = "openat2: beneath, no_symlinks, no_magiclinks";

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

impl FolderHandle {
    pub fn open(path: &Path) -> io::Result<Self> {
        // The path has no links; one that was put into it since is not followed.
        let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        Ok(Self(rustix::fs::openat2(CWD, path, folder_flags(), Mode::empty(), links)?))
    }

    pub fn open_child(&self, name: &OsStr) -> io::Result<Self> {
        Ok(Self(rustix::fs::openat2(&self.0, name, folder_flags(), Mode::empty(), BENEATH_FLAGS)?))
    }

    /// Opens a folder at or below `base`. The path from `base` down is walked without following links; the path to
    /// `base` belongs to the operator.
    pub fn open_below(base: &Path, at: &Path) -> io::Result<Self> {
        let inside = at.strip_prefix(base).map_err(|_| io::ErrorKind::NotFound)?;
        let root = Self::open(&base.canonicalize()?)?;
        inside.iter().try_fold(root, |folder, name| folder.open_child(name))
    }

    /// Opens the child folder and creates it if missing. A new name is durable when this returns.
    pub fn open_or_create_child(&self, name: &OsStr) -> io::Result<Self> {
        match rustix::fs::mkdirat(&self.0, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => self.sync()?,
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        self.open_child(name)
    }

    /// Returns the status of an entry, if it exists. Links are not followed.
    pub fn stat(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file for reading without blocking: a named pipe without a writer would block forever.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat2(&self.0, name, flags, Mode::empty(), BENEATH_FLAGS)?))
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
            // Skips entries that are gone since they were listed or cannot be accessed.
            if let Ok(Some(stat)) = self.stat(&name) {
                found.push(FolderEntry { name, kind: file_type(&stat), size: file_size(&stat) });
            }
        }
        found.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        Ok(FolderEntries { found, has_more })
    }

    /// Replaces or creates a file atomically: a reader sees the old or the new content, also after a crash.
    pub fn replace_file(&self, name: &OsStr, content: &[u8]) -> io::Result<()> {
        let mode = self.stat(name)?.map(|stat| Mode::from_raw_mode(stat.st_mode));
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

    /// Creates a temporary file with a unique name. Skips names that are left over or in use.
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
            // Some file systems cannot sync a folder, and there is no alternative on them.
            Ok(()) | Err(rustix::io::Errno::INVAL) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
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
        FileType::Symlink => "a symbolic link that can not be followed",
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
    fn replacing_keeps_the_mode_and_leaves_no_temporary_file() {
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
    fn a_temporary_file_left_by_a_crash_is_passed_over() {
        let home = tempfile::tempdir().unwrap();
        let folder = FolderHandle::open(home.path()).unwrap();
        let (left, _) = folder.create_temporary().unwrap();
        folder.replace_file(OsStr::new("a"), b"new").unwrap();
        assert!(home.path().join(left).exists());
        assert_eq!(std::fs::read(home.path().join("a")).unwrap(), b"new");
    }

    #[test]
    fn temporary_files_of_processes_that_are_gone_are_swept() {
        let home = tempfile::tempdir().unwrap();
        let below = home.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        let own = std::process::id();
        // No process has an id this large.
        let (left, kept) = (".polyclaw-99999999-0.tmp", format!(".polyclaw-{own}-0.tmp"));
        for name in [left, &kept, "notes.tmp", ".polyclaw-note"] {
            std::fs::write(below.join(name), "x").unwrap();
        }
        assert_eq!(sweep_temporary(home.path()), 1);
        assert!(!below.join(left).exists() && below.join(&kept).exists());
        assert!(below.join("notes.tmp").exists() && below.join(".polyclaw-note").exists());
    }

    #[test]
    fn a_replace_that_fails_cleans_up() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("taken")).unwrap();
        let folder = FolderHandle::open(home.path()).unwrap();
        assert!(folder.replace_file(OsStr::new("taken"), b"new").is_err());
        assert_eq!(folder.read_entries().unwrap().found.len(), 1);
    }
}
