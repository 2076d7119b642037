//! The `search_files` tool: finds matching lines in all text files below a folder.

mod glob;

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;

use polyclaw_domain::tool::{ToolOutcome, ToolScope, ToolSpec};
use regex::bytes::{Regex, RegexBuilder};
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::blocking::{self, WorkBudget};
use crate::error::{Error, Result};
use crate::text;
use crate::workspace::{self, WorkspacePath};
use polyclaw_folder::{FolderEntry, FolderHandle};

pub const TOOL_NAME: &str = "search_files";
const MAX_MATCHES: usize = 1000;
const MAX_TEXT_BYTES: usize = 128 * 1024;
const MAX_LINE_LEN: usize = 400;
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
const MAX_DEPTH: u32 = 64;
/// Enough for real patterns. Rejects nested repeats such as `(a{999}){999}`.
const MAX_PATTERN_SIZE: usize = 1 << 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchFilesArguments {
    /// A regular expression, matched against each line. An invalid one is searched as plain text.
    pattern: String,
    /// The folder or file to search, relative to the workspace. Default: the workspace itself.
    path: Option<String>,
    /// Only search files that match, for example `*.rs` or `src/**/*.ts`.
    glob: Option<String>,
    /// Maximum number of matching lines to return, up to 1000. Default: 100.
    limit: Option<usize>,
}

pub fn spec() -> ToolSpec {
    arguments::build_tool_spec::<SearchFilesArguments>(
        TOOL_NAME,
        "Searches the lines of text files. Returns matches as path:line: text. Skips .git, symbolic links, binary \
         files and files over 16 MiB.",
    )
}

pub async fn run(scope: &ToolScope, arguments: SearchFilesArguments) -> Result<ToolOutcome> {
    let workspace = scope.workspace.clone();
    let found = blocking::run_blocking(move |budget| {
        let place = workspace::resolve_path(&workspace, arguments.path.as_deref().unwrap_or("."))?;
        search_place(&place, &arguments, budget)
    });
    Ok(ToolOutcome::ok(found.await?))
}

fn search_place(
    place: &WorkspacePath,
    arguments: &SearchFilesArguments,
    budget: &WorkBudget,
) -> Result<String> {
    let (pattern, is_plain) = compile_pattern(&arguments.pattern)?;
    let glob = arguments.glob.as_deref().map(glob::compile_glob).transpose()?;
    let limit = arguments.limit.unwrap_or(100).clamp(1, MAX_MATCHES);
    let mut search = FileSearch { pattern, glob, limit, budget, found: SearchMatches::default() };
    if place.file_type()? == FileType::RegularFile {
        let (file, _) = place.open_file()?;
        search.search_file(file, &text::name(place.relative_path().as_os_str()));
    } else {
        let prefix = match text::name(place.relative_path().as_os_str()) {
            inside if inside.is_empty() => inside,
            inside => format!("{inside}/"),
        };
        search.search_folder(
            &place.open_folder()?,
            &FolderWalk { shown: prefix, inside: String::new(), depth: 0 },
        );
    }
    Ok(search.render_report(is_plain))
}

fn compile_pattern(pattern: &str) -> Result<(Regex, bool)> {
    let build = |text: &str| RegexBuilder::new(text).size_limit(MAX_PATTERN_SIZE).build();
    match build(pattern) {
        Ok(regex) => Ok((regex, false)),
        Err(regex::Error::Syntax(_)) => {
            let plain = build(&regex::escape(pattern));
            Ok((plain.map_err(|error| Error::Arguments(error.to_string()))?, true))
        }
        Err(error) => Err(Error::Arguments(error.to_string())),
    }
}

#[derive(Default)]
struct SearchMatches {
    text: String,
    matches: usize,
    /// Files too large to read, and folders listed incompletely.
    skipped: usize,
    is_cut: bool,
}

struct FolderWalk {
    /// Prefix of names in the output, relative to the workspace.
    shown: String,
    /// Prefix of names for the glob, relative to the searched folder.
    inside: String,
    depth: u32,
}

struct FileSearch<'a> {
    pattern: Regex,
    glob: Option<glob::PathGlob>,
    limit: usize,
    budget: &'a WorkBudget,
    found: SearchMatches,
}

impl FileSearch<'_> {
    fn search_folder(&mut self, folder: &FolderHandle, walk: &FolderWalk) {
        let Ok(entries) = folder.read_entries() else { return self.found.skipped += 1 };
        self.found.skipped += usize::from(entries.has_more);
        for entry in &entries.found {
            if self.is_done() {
                return;
            }
            match entry.kind {
                FileType::Directory => self.search_child(folder, &entry.name, walk),
                FileType::RegularFile => self.search_entry(folder, entry, walk),
                _ => {}
            }
        }
    }

    fn search_child(&mut self, folder: &FolderHandle, name: &OsStr, walk: &FolderWalk) {
        if name == ".git" {
            return;
        }
        match folder.open_child(name) {
            Ok(child) if walk.depth < MAX_DEPTH => {
                let name = text::name(name);
                let shown = format!("{}{name}/", walk.shown);
                let inside = format!("{}{name}/", walk.inside);
                self.search_folder(&child, &FolderWalk { shown, inside, depth: walk.depth + 1 });
            }
            _ => self.found.skipped += 1,
        }
    }

    fn search_entry(&mut self, folder: &FolderHandle, entry: &FolderEntry, walk: &FolderWalk) {
        let name = text::name(&entry.name);
        let wanted = self.glob.as_ref().is_none_or(|glob| glob.matches(&format!("{}{name}", walk.inside)));
        if !wanted {
            return;
        }
        match folder.open_file(&entry.name) {
            Ok(file) => self.search_file(file, &format!("{}{name}", walk.shown)),
            Err(_) => self.found.skipped += 1,
        }
    }

    fn search_file(&mut self, file: File, shown: &str) {
        // Checked on the open file, because the listed one may have been replaced.
        let is_fit = file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_FILE_BYTES);
        let mut bytes = Vec::new();
        if !is_fit || file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).is_err() {
            self.found.skipped += 1;
            return;
        }
        if is_binary(&bytes) {
            return;
        }
        for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if self.found.is_cut || number % 1024 == 0 && self.budget.is_spent() {
                return;
            }
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if self.pattern.is_match(line) {
                self.add_match(shown, number + 1, line);
            }
        }
    }

    fn add_match(&mut self, shown: &str, number: usize, line: &[u8]) {
        if self.found.matches == self.limit || self.found.text.len() >= MAX_TEXT_BYTES {
            self.found.is_cut = true;
            return;
        }
        let line = &line[..line.len().min(MAX_LINE_LEN * 2)];
        let line = text::truncate_text(&text::one_line(&String::from_utf8_lossy(line)), MAX_LINE_LEN);
        self.found.text.push_str(&format!("{shown}:{number}: {line}\n"));
        self.found.matches += 1;
    }

    fn is_done(&self) -> bool {
        self.found.is_cut || self.budget.is_spent()
    }

    fn render_report(self, is_plain: bool) -> String {
        let SearchMatches { mut text, matches, skipped, is_cut } = self.found;
        let notes = [
            (matches == 0, "no matches".to_owned()),
            (is_plain, "not a valid regular expression; searched as plain text".to_owned()),
            (is_cut, format!("only the first {matches} matches are shown")),
            (self.budget.is_spent(), "timed out: not all files were searched".to_owned()),
            (skipped > 0, format!("{skipped} files or folders were too large or unreadable")),
        ];
        for (_, note) in notes.iter().filter(|(applies, _)| *applies) {
            text.push_str(&format!("[{note}]\n"));
        }
        text
    }
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(8192)].contains(&0)
}

#[cfg(test)]
mod tests;
