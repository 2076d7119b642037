//! Opens a folder inside an open one, also where its owner has no right to it.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, Result};
use rustix::path::Arg;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A name in a folder leads to what is in that folder only.
const ONE_NAME: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// To list a folder and to look at what is in it.
pub const LISTING_RIGHTS: Mode = Mode::RUSR.union(Mode::XUSR);

/// Opens the folder `name` of `parent` for reading, through no link. Where it is closed to its owner, the owner gets the
/// rights to list it first.
pub fn open_owned_folder(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(open_with_rights(parent, name, FOLDER, (ResolveFlags::empty(), LISTING_RIGHTS))?)
}

/// The same for a file, with the right to read it. A pipe in its place is not waited for.
pub fn open_owned_file(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(open_with_rights(parent, name, flags, (ResolveFlags::empty(), Mode::RUSR))?.into())
}

/// Opens the folder `name` of `parent`. Where it is closed to its owner, the owner gets `rights` to it first.
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
            // Of what is closed only a handle can be had. The link in /proc leads from it to that very file or folder,
            // whatever stands at its name by now.
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

/// Gives the owner rights to an open folder. False where they are there already.
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
