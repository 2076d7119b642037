//! The `list_dir` tool: lists a folder and its subfolders.

use std::ffi::OsStr;

use polyclaw_domain::tool::{ToolOutcome, ToolScope, ToolSpec};
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::blocking::{self, WorkBudget};
use crate::error::Result;
use crate::text;
use crate::workspace::{self, WorkspacePath};
use polyclaw_folder::{FolderEntry, FolderHandle};

pub const TOOL_NAME: &str = "list_dir";
const MAX_LINES: usize = 2000;
const MAX_TEXT_BYTES: usize = 128 * 1024;
const MAX_DEPTH: u32 = 16;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListDirArguments {
    /// The folder, relative to the workspace. Default: the workspace itself.
    path: Option<String>,
    /// How many levels to show, from 1 to 16. Default: 1.
    depth: Option<u32>,
}

pub fn spec() -> ToolSpec {
    arguments::build_tool_spec::<ListDirArguments>(
        TOOL_NAME,
        "Lists a folder: folders end with '/', files show their size in bytes. Symbolic links are not followed.",
    )
}

pub async fn run(scope: &ToolScope, arguments: ListDirArguments) -> Result<ToolOutcome> {
    let workspace = scope.workspace.clone();
    let depth = arguments.depth.unwrap_or(1).clamp(1, MAX_DEPTH);
    let listing = blocking::run_blocking(move |budget| {
        let place = workspace::resolve_path(&workspace, arguments.path.as_deref().unwrap_or("."))?;
        list_folder(&place, depth, budget)
    });
    Ok(ToolOutcome::ok(listing.await?))
}

fn list_folder(place: &WorkspacePath, depth: u32, budget: &WorkBudget) -> Result<String> {
    let folder = place.open_folder()?;
    let mut listing = FolderListing { text: String::new(), lines: 0, is_cut: false, budget };
    listing.add_folder(&folder, "", depth);
    if listing.lines == 0 {
        return Ok("[the folder is empty]".to_owned());
    }
    if listing.is_cut {
        listing.text.push_str("[the list is truncated: list a subfolder, or use a smaller depth]\n");
    }
    Ok(listing.text)
}

struct FolderListing<'a> {
    text: String,
    lines: usize,
    is_cut: bool,
    budget: &'a WorkBudget,
}

impl FolderListing<'_> {
    fn add_folder(&mut self, folder: &FolderHandle, prefix: &str, depth: u32) {
        let Ok(entries) = folder.read_entries() else {
            return self.add_line(&format!("{prefix}[cannot read this folder]"));
        };
        for entry in &entries.found {
            if self.is_full() {
                self.is_cut = true;
                return;
            }
            let shown = format!("{prefix}{}", text::name(&entry.name));
            self.add_line(&describe_entry(&shown, entry));
            if entry.kind == FileType::Directory && depth > 1 {
                self.add_child(folder, &entry.name, &format!("{shown}/"), depth - 1);
            }
        }
        self.is_cut |= entries.has_more;
    }

    fn add_child(&mut self, folder: &FolderHandle, name: &OsStr, prefix: &str, depth: u32) {
        match folder.open_child(name) {
            Ok(child) => self.add_folder(&child, prefix, depth),
            Err(_) => self.add_line(&format!("{prefix}[cannot read this folder]")),
        }
    }

    fn add_line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
    }

    fn is_full(&self) -> bool {
        self.lines >= MAX_LINES || self.text.len() >= MAX_TEXT_BYTES || self.budget.is_spent()
    }
}

fn describe_entry(shown: &str, entry: &FolderEntry) -> String {
    match entry.kind {
        FileType::Directory => format!("{shown}/"),
        FileType::RegularFile => format!("{shown} ({} bytes)", entry.size),
        FileType::Symlink => format!("{shown} (link)"),
        _ => format!("{shown} (special file)"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn listing_is_ordered_and_follows_no_symlinks() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("b/c")).unwrap();
        fs::write(home.path().join("b/c/deep"), "123").unwrap();
        fs::write(home.path().join("a\nb"), "").unwrap();
        fs::write(home.path().join("b/.polyclaw-7-0.tmp"), "half of what another call writes").unwrap();
        std::os::unix::fs::symlink("/etc", home.path().join("z")).unwrap();
        let place = workspace::resolve_path(home.path(), "").unwrap();
        let shallow = list_folder(&place, 1, &WorkBudget::ample()).unwrap();
        assert_eq!(shallow, "a\u{fffd}b (0 bytes)\nb/\nz (link)\n");
        let deep = list_folder(&place, 5, &WorkBudget::ample()).unwrap();
        assert_eq!(deep, "a\u{fffd}b (0 bytes)\nb/\nb/c/\nb/c/deep (3 bytes)\nz (link)\n");
    }

    #[test]
    fn long_listing_is_cut_with_a_note() {
        let home = tempfile::tempdir().unwrap();
        for number in 0..MAX_LINES + 10 {
            fs::write(home.path().join(number.to_string()), "").unwrap();
        }
        let place = workspace::resolve_path(home.path(), "").unwrap();
        let text = list_folder(&place, 1, &WorkBudget::ample()).unwrap();
        assert_eq!(text.lines().count(), MAX_LINES + 1);
        assert!(text.ends_with("smaller depth]\n"));
    }
}
