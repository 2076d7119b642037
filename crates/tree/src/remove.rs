//! Removes a folder tree of any depth, regardless of the modes of its folders.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

use crate::folder_access::{grant_owner_rights, open_subfolder};
use crate::measure::is_dot;

/// Maximum number of folders open at once. Deeper folders are first moved up to the top folder. The number of
/// descriptors and the memory usage therefore do not grow with the depth.
const MAX_OPEN_LEVELS: usize = 32;
/// A folder that is moved up gets a new name: this prefix and a number.
const MOVED_PREFIX: &str = ".removing-";

/// Removes the entry at a path: a file, a symbolic link, or a folder with all its contents. Symbolic links at or below
/// the path are not followed, and mounts below it are not entered. An entry that cannot be removed does not prevent the
/// removal of the others; the first remaining failure is returned. A missing entry is not a failure.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let name = CString::new(name.as_bytes()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = match rustix::fs::open(parent, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    match rustix::fs::unlinkat(&parent, &name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    // The top folder may itself be a mount point. Only mounts below it must not be entered.
    let top = open_subfolder(parent.as_fd(), &name, (ResolveFlags::empty(), Mode::RWXU))?;
    TreeRemoval::new(top)?.remove_contents()?;
    Ok(rustix::fs::unlinkat(&parent, &name, AtFlags::REMOVEDIR)?)
}

struct TreeRemoval {
    /// The open folders, from the top folder to the folder that is being emptied.
    levels: Vec<OpenLevel>,
    /// The last number used for the name of a moved folder.
    moved_number: u64,
    pass: PassCounts,
}

struct OpenLevel {
    name: CString,
    folder: Dir,
}

/// Results of one pass over the contents of the top folder.
#[derive(Default)]
struct PassCounts {
    removed: u64,
    moved: u64,
    failure: Option<Errno>,
}

impl PassCounts {
    fn note_failure(&mut self, error: Errno) {
        // Already removed, so not a failure.
        if error != Errno::NOENT {
            self.failure.get_or_insert(error);
        }
    }
}

impl TreeRemoval {
    fn new(top: OwnedFd) -> io::Result<Self> {
        let levels = vec![OpenLevel::new(CString::default(), top)?];
        Ok(Self { levels, moved_number: 0, pass: PassCounts::default() })
    }

    /// Repeats passes until the top folder is empty, or until a pass fails without removing or moving any entry.
    fn remove_contents(&mut self) -> io::Result<()> {
        loop {
            self.pass = PassCounts::default();
            self.levels[0].folder.rewind();
            self.run_pass();
            let PassCounts { removed, moved, failure } = &self.pass;
            match failure {
                None if *moved == 0 => return Ok(()),
                Some(error) if removed + moved == 0 => return Err((*error).into()),
                _ => {}
            }
        }
    }

    fn run_pass(&mut self) {
        while let Some(level) = self.levels.last_mut() {
            match level.next_subfolder(&mut self.pass) {
                Some(name) if self.levels.len() < MAX_OPEN_LEVELS => self.enter_folder(name),
                Some(name) => self.move_to_top(&name),
                None if self.levels.len() == 1 => return,
                None => self.leave_folder(),
            }
        }
    }

    fn enter_folder(&mut self, name: CString) {
        let Some(level) = self.levels.last() else { return };
        match level.open_subfolder(&name).and_then(|folder| OpenLevel::new(name, folder)) {
            Ok(level) => self.levels.push(level),
            Err(error) => self.pass.note_failure(error),
        }
    }

    /// Removes the emptied folder and returns to its parent.
    fn leave_folder(&mut self) {
        let (Some(emptied), Some(above)) = (self.levels.pop(), self.levels.last()) else { return };
        let above = above.folder.fd();
        match above.and_then(|above| rustix::fs::unlinkat(above, &emptied.name, AtFlags::REMOVEDIR)) {
            Ok(()) => self.pass.removed += 1,
            Err(error) => self.pass.note_failure(error),
        }
    }

    fn move_to_top(&mut self, name: &CStr) {
        match self.rename_to_top(name) {
            Ok(()) => self.pass.moved += 1,
            Err(error) => self.pass.note_failure(error),
        }
    }

    fn rename_to_top(&mut self, name: &CStr) -> rustix::io::Result<()> {
        let (Some(level), Some(top)) = (self.levels.last(), self.levels.first()) else { return Ok(()) };
        let (from, top) = (level.folder.fd()?, top.folder.fd()?);
        // A move changes the `..` entry of the folder, which requires write permission on it. Opening the folder
        // grants this permission.
        drop(level.open_subfolder(name)?);
        loop {
            self.moved_number += 1;
            let free = format!("{MOVED_PREFIX}{}", self.moved_number);
            match rustix::fs::renameat_with(from, name, top, free, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                renamed => return renamed,
            }
        }
    }
}

impl OpenLevel {
    fn new(name: CString, folder: OwnedFd) -> rustix::io::Result<Self> {
        Ok(Self { name, folder: Dir::new(folder)? })
    }

    /// Opens a subfolder and grants its owner all permissions.
    fn open_subfolder(&self, name: &CStr) -> rustix::io::Result<OwnedFd> {
        let folder = open_subfolder(self.folder.fd()?, name, (ResolveFlags::NO_XDEV, Mode::RWXU))?;
        // A failure here may be harmless, because root needs no permissions.
        grant_owner_rights(folder.as_fd(), Mode::RWXU).ok();
        Ok(folder)
    }

    /// Removes entries until the next one is a folder. Returns the name of that folder.
    fn next_subfolder(&mut self, pass: &mut PassCounts) -> Option<CString> {
        while let Some(entry) = self.folder.read() {
            let entry = entry.map_err(|error| pass.note_failure(error)).ok()?;
            let name = entry.file_name();
            if is_dot(name) {
                continue;
            }
            match self.remove_entry(name, entry.file_type()) {
                Ok(true) => pass.removed += 1,
                Ok(false) => return Some(name.to_owned()),
                Err(error) => pass.note_failure(error),
            }
        }
        None
    }

    /// Removes an entry that is not a folder. Returns `false`, without removing it, if it is a folder.
    fn remove_entry(&self, name: &CStr, kind: FileType) -> rustix::io::Result<bool> {
        let folder = self.folder.fd()?;
        let kind = match kind {
            FileType::Unknown => {
                let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode)
            }
            known => known,
        };
        if kind == FileType::Directory {
            return Ok(false);
        }
        rustix::fs::unlinkat(folder, name, AtFlags::empty()).map(|()| true)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// Creates nested folders with a file beside each.
    fn make_chain(top: &Path, depth: usize) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let mut at = rustix::fs::open(top, flags, Mode::empty()).unwrap();
        for _ in 0..depth {
            rustix::fs::mkdirat(&at, c"d", Mode::RWXU).unwrap();
            rustix::fs::openat(&at, c"f", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
            at = rustix::fs::openat(&at, c"d", flags, Mode::empty()).unwrap();
        }
    }

    #[test]
    fn deep_wide_and_unreadable_trees_are_removed() {
        let room = tempfile::tempdir().unwrap();
        let (tree, other) = (room.path().join("tree"), room.path().join("other"));
        fs::create_dir_all(tree.join("wide")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("kept"), "").unwrap();
        symlink(&other, tree.join("link")).unwrap();
        // The removal itself would use this name for a moved folder.
        fs::create_dir(tree.join(format!("{MOVED_PREFIX}1"))).unwrap();
        make_chain(&tree, 5_000);
        for n in 0..300 {
            let below = tree.join(format!("wide/{n}/below"));
            fs::create_dir_all(&below).unwrap();
            fs::write(below.join("f"), "").unwrap();
        }
        fs::set_permissions(tree.join("wide/7"), fs::Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(&tree, fs::Permissions::from_mode(0o000)).unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists() && other.join("kept").exists());
        remove_tree(&tree).unwrap();
        remove_tree(&tree.join("not/there")).unwrap();
    }

    #[test]
    fn symlink_or_file_is_removed_without_following() {
        let room = tempfile::tempdir().unwrap();
        let (link, file) = (room.path().join("link"), room.path().join("file"));
        fs::write(&file, "").unwrap();
        symlink(room.path(), &link).unwrap();
        remove_tree(&link).unwrap();
        assert!(!link.is_symlink() && file.exists());
        remove_tree(&file).unwrap();
        assert!(!file.exists());
    }
}
