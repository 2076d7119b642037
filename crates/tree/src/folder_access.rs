//! Opens a folder inside an open one, also where its owner has no right to it.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, Result};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A name in a folder leads to what is in that folder only.
const ONE_NAME: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// Opens the folder `name` of `parent`. Where it is closed to its owner, the owner gets `rights` to it first.
pub fn open_subfolder(
    parent: BorrowedFd<'_>,
    name: &CStr,
    (rule, rights): (ResolveFlags, Mode),
) -> Result<OwnedFd> {
    let open = |flags| rustix::fs::openat2(parent, name, flags, Mode::empty(), rule | ONE_NAME);
    match open(FOLDER) {
        Err(Errno::ACCESS) => {
            // Of a closed folder only a handle can be had. The link in /proc leads from it to that very folder, whatever
            // stands at its name by now.
            let handle = open(FOLDER.difference(OFlags::RDONLY) | OFlags::PATH)?;
            let mode = current_mode(handle.as_fd())? | rights;
            rustix::fs::chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), mode)?;
            open(FOLDER)
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
