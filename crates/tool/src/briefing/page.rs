//! Reads one file of a workspace for a prompt. Links are not followed: the daemon may read more than the agent's
//! programs, and the target would be shown to a model.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;

use polyclaw_domain::briefing::{BriefingPage, MAX_FILE_CHARS};
use rustix::fs::FileType;

use polyclaw_folder as folder;
use polyclaw_folder::FolderHandle;

/// Enough bytes for one character more than is shown, in any script.
const MAX_PAGE_BYTES: u64 = MAX_FILE_CHARS as u64 * 4 + 4;

/// Returns `None` if there is no such file.
pub fn read_page(base: &Path, at: &Path, name: &str) -> Option<BriefingPage> {
    let folder = FolderHandle::open_below(base, at).ok()?;
    let name = OsStr::new(name);
    let kind = folder::file_type(&folder.stat(name).ok()??);
    if kind != FileType::RegularFile {
        return Some(BriefingPage::Refused(folder::describe_file_type(kind)));
    }
    let mut bytes = Vec::new();
    let read =
        folder.open_regular_file(name).and_then(|file| file.take(MAX_PAGE_BYTES).read_to_end(&mut bytes));
    match read {
        Ok(_) => Some(BriefingPage::Text(String::from_utf8_lossy(&bytes).into_owned())),
        Err(_) => Some(BriefingPage::Refused("not readable")),
    }
}
