//! Opens files and folders inside an open folder, even if their owner lacks permission.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, Result};
use rustix::path::Arg;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A name may resolve only to an entry of that folder.
const ONE_NAME: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// Owner permissions required to list a folder and to access its entries.
pub const LISTING_RIGHTS: Mode = Mode::RUSR.union(Mode::XUSR);

/// Opens the subfolder `name` of `parent` for reading, without following symbolic links. If access is denied, grants
/// the owner the permissions to list it and retries.
pub fn open_owned_folder(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(open_with_rights(parent, name, FOLDER, (ResolveFlags::empty(), LISTING_RIGHTS))?)
}

/// Opens the file `name` of `parent` for reading, without following symbolic links. If access is denied, grants the
/// owner read permission and retries. Does not block on a named pipe.
pub fn open_owned_file(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(open_with_rights(parent, name, flags, (ResolveFlags::empty(), Mode::RUSR))?.into())
}

/// Opens the subfolder `name` of `parent` with the resolve flags in `access`. If access is denied, grants the owner the
/// permissions in `access` and retries.
pub fn open_subfolder(parent: BorrowedFd<'_>, name: &CStr, access: (ResolveFlags, Mode)) -> Result<OwnedFd> {
    open_with_rights(parent, name, FOLDER, access)
}

fn open_with_rights(
    parent: BorrowedFd<'_>,
    name: impl Arg + Copy,
    flags: OFlags,
    (rule, rights): (ResolveFlags, Mode),
) -> Result<OwnedFd> {
    let open = |flags| rustix::fs::openat2(parent, name, flags, Mode::empty(), rule | ONE_NAME);
    match open(flags) {
        Err(Errno::ACCESS) => {
            // An inaccessible entry can only be opened as an `O_PATH` handle. Its link in /proc leads to that exact
            // file or folder, even if its name now refers to another.
            let handle = open(OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
            let mode = current_mode(handle.as_fd())?;
            if mode.contains(rights) {
                return Err(Errno::ACCESS);
            }
            rustix::fs::chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), mode | rights)?;
            open(flags)
        }
        opened => opened,
    }
}

/// Grants the owner permissions on an open folder. Returns `false` if the owner already has them.
pub fn grant_owner_rights(folder: BorrowedFd<'_>, rights: Mode) -> Result<bool> {
    let mode = current_mode(folder)?;
    if mode.contains(rights) {
        return Ok(false);
    }
    rustix::fs::fchmod(folder, mode | rights)?;
    Ok(true)
}

fn current_mode(folder: BorrowedFd<'_>) -> Result<Mode> {
    Ok(Mode::from_raw_mode(rustix::fs::fstat(folder)?.st_mode))
}
