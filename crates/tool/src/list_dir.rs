//! `list_dir`: what is in a folder, and below it.

use std::ffi::OsStr;

use polyclaw_domain::tool::{ToolOutcome, ToolScope, ToolSpec};
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::error::Result;
use crate::folder::{Entry, Folder};
use crate::text;
use crate::work::{self, Budget};
use crate::workspace::{self, Place};

pub const NAME: &str = "list_dir";
const MOST_LINES: usize = 2000;
const MOST_TEXT: usize = 128 * 1024;
const DEEPEST: u32 = 16;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The folder, relative to the workspace. The workspace itself if left out.
    path: Option<String>,
    /// How many levels to show, from 1 to 16. 1 if left out.
    depth: Option<u32>,
}

pub fn spec() -> ToolSpec {
    arguments::build_tool_spec::<Arguments>(
        NAME,
        "Lists a folder: folders end with '/', files show their size in bytes. Links are not followed.",
    )
}

pub async fn run(scope: &ToolScope, arguments: Arguments) -> Result<ToolOutcome> {
    let workspace = scope.workspace.clone();
    let depth = arguments.depth.unwrap_or(1).clamp(1, DEEPEST);
    let listing = work::blocking(move |budget| {
        let place = workspace::locate(&workspace, arguments.path.as_deref().unwrap_or("."))?;
        list(&place, depth, budget)
    });
    Ok(ToolOutcome::ok(listing.await?))
}

fn list(place: &Place, depth: u32, budget: &Budget) -> Result<String> {
    let folder = place.open_folder()?;
    let mut listing = Listing { text: String::new(), lines: 0, is_cut: false, budget };
    listing.add(&folder, "", depth);
    if listing.lines == 0 {
        return Ok("[the folder is empty]".to_owned());
    }
    if listing.is_cut {
        listing.text.push_str("[there is more: list a folder further down, or with less depth]\n");
    }
    Ok(listing.text)
}

struct Listing<'a> {
    text: String,
    lines: usize,
    is_cut: bool,
    budget: &'a Budget,
}

impl Listing<'_> {
    fn add(&mut self, folder: &Folder, prefix: &str, depth: u32) {
        let Ok(entries) = folder.entries() else {
            return self.line(&format!("{prefix}[this folder can not be read]"));
        };
        for entry in &entries.found {
            if self.is_full() {
                self.is_cut = true;
                return;
            }
            let shown = format!("{prefix}{}", text::name(&entry.name));
            self.line(&describe(&shown, entry));
            if entry.kind == FileType::Directory && depth > 1 {
                self.below(folder, &entry.name, &format!("{shown}/"), depth - 1);
            }
        }
        self.is_cut |= entries.has_more;
    }

    fn below(&mut self, folder: &Folder, name: &OsStr, prefix: &str, depth: u32) {
        match folder.child(name) {
            Ok(child) => self.add(&child, prefix, depth),
            Err(_) => self.line(&format!("{prefix}[this folder can not be read]")),
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
    }

    fn is_full(&self) -> bool {
        self.lines >= MOST_LINES || self.text.len() >= MOST_TEXT || self.budget.is_spent()
    }
}

fn describe(shown: &str, entry: &Entry) -> String {
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
    fn a_listing_shows_levels_in_order_and_no_link_is_followed() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("b/c")).unwrap();
        fs::write(home.path().join("b/c/deep"), "123").unwrap();
        fs::write(home.path().join("a\nb"), "").unwrap();
        fs::write(home.path().join("b/.polyclaw-7-0.tmp"), "half of what another call writes").unwrap();
        std::os::unix::fs::symlink("/etc", home.path().join("z")).unwrap();
        let place = workspace::locate(home.path(), "").unwrap();
        let shallow = list(&place, 1, &Budget::ample()).unwrap();
        assert_eq!(shallow, "a\u{fffd}b (0 bytes)\nb/\nz (link)\n");
        let deep = list(&place, 5, &Budget::ample()).unwrap();
        assert_eq!(deep, "a\u{fffd}b (0 bytes)\nb/\nb/c/\nb/c/deep (3 bytes)\nz (link)\n");
    }

    #[test]
    fn a_long_listing_is_cut_with_a_note() {
        let home = tempfile::tempdir().unwrap();
        for number in 0..MOST_LINES + 10 {
            fs::write(home.path().join(number.to_string()), "").unwrap();
        }
        let place = workspace::locate(home.path(), "").unwrap();
        let text = list(&place, 1, &Budget::ample()).unwrap();
        assert_eq!(text.lines().count(), MOST_LINES + 1);
        assert!(text.ends_with("less depth]\n"));
    }
}
