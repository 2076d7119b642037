//! `search_files`: lines that match, in all text files below a folder.

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
use crate::error::{Error, Result};
use crate::folder::{Entry, Folder};
use crate::text;
use crate::work::{self, Budget};
use crate::workspace::{self, Place};

pub const NAME: &str = "search_files";
const MOST_MATCHES: usize = 1000;
const MOST_TEXT: usize = 128 * 1024;
const LONGEST_LINE: usize = 400;
const LARGEST_FILE: u64 = 16 * 1024 * 1024;
const DEEPEST: u32 = 64;
/// Enough for any pattern a person would write; a nested repeat such as `(a{999}){999}` is not one.
const LARGEST_PATTERN: usize = 1 << 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// A regular expression, matched against each line. What is not a valid one is searched as plain text.
    pattern: String,
    /// The folder or file to search, relative to the workspace. The workspace itself if left out.
    path: Option<String>,
    /// Only files like this, for example `*.rs` or `src/**/*.ts`.
    glob: Option<String>,
    /// How many matching lines to return at most, up to 1000. 100 if left out.
    limit: Option<usize>,
}

pub fn spec() -> ToolSpec {
    arguments::build_tool_spec::<Arguments>(
        NAME,
        "Searches the lines of text files; answers with path:line: text. Skips .git, links, binary files and \
         files over 16 MiB.",
    )
}

pub async fn run(scope: &ToolScope, arguments: Arguments) -> Result<ToolOutcome> {
    let workspace = scope.workspace.clone();
    let found = work::blocking(move |budget| {
        let place = workspace::locate(&workspace, arguments.path.as_deref().unwrap_or("."))?;
        search(&place, &arguments, budget)
    });
    Ok(ToolOutcome::ok(found.await?))
}

fn search(place: &Place, arguments: &Arguments, budget: &Budget) -> Result<String> {
    let (pattern, is_plain) = compile(&arguments.pattern)?;
    let glob = arguments.glob.as_deref().map(glob::compile).transpose()?;
    let limit = arguments.limit.unwrap_or(100).clamp(1, MOST_MATCHES);
    let mut search = Search { pattern, glob, limit, budget, found: Found::default() };
    if place.kind()? == FileType::RegularFile {
        let (file, _) = place.open_file()?;
        search.file(file, &text::name(place.inside().as_os_str()));
    } else {
        let prefix = match text::name(place.inside().as_os_str()) {
            inside if inside.is_empty() => inside,
            inside => format!("{inside}/"),
        };
        search.folder(&place.open_folder()?, &Walk { shown: prefix, inside: String::new(), depth: 0 });
    }
    Ok(search.report(is_plain))
}

fn compile(pattern: &str) -> Result<(Regex, bool)> {
    let build = |text: &str| RegexBuilder::new(text).size_limit(LARGEST_PATTERN).build();
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
struct Found {
    text: String,
    matches: usize,
    /// Files too large to read, and folders cut short.
    skipped: usize,
    is_cut: bool,
}

struct Walk {
    /// Before each name in the output: from the workspace.
    shown: String,
    /// Before each name for the glob: from where the search began.
    inside: String,
    depth: u32,
}

struct Search<'a> {
    pattern: Regex,
    glob: Option<glob::Glob>,
    limit: usize,
    budget: &'a Budget,
    found: Found,
}

impl Search<'_> {
    fn folder(&mut self, folder: &Folder, walk: &Walk) {
        let Ok(entries) = folder.entries() else { return self.found.skipped += 1 };
        self.found.skipped += usize::from(entries.has_more);
        for entry in &entries.found {
            if self.is_done() {
                return;
            }
            match entry.kind {
                FileType::Directory => self.below(folder, &entry.name, walk),
                FileType::RegularFile => self.entry(folder, entry, walk),
                _ => {}
            }
        }
    }

    fn below(&mut self, folder: &Folder, name: &OsStr, walk: &Walk) {
        if name == ".git" {
            return;
        }
        match folder.child(name) {
            Ok(child) if walk.depth < DEEPEST => {
                let name = text::name(name);
                let shown = format!("{}{name}/", walk.shown);
                let inside = format!("{}{name}/", walk.inside);
                self.folder(&child, &Walk { shown, inside, depth: walk.depth + 1 });
            }
            _ => self.found.skipped += 1,
        }
    }

    fn entry(&mut self, folder: &Folder, entry: &Entry, walk: &Walk) {
        let name = text::name(&entry.name);
        let wanted = self.glob.as_ref().is_none_or(|glob| glob.matches(&format!("{}{name}", walk.inside)));
        if !wanted {
            return;
        }
        match folder.file(&entry.name) {
            Ok(file) => self.file(file, &format!("{}{name}", walk.shown)),
            Err(_) => self.found.skipped += 1,
        }
    }

    fn file(&mut self, file: File, shown: &str) {
        // Asked of the open file: what was listed may be something else by now.
        let is_fit = file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= LARGEST_FILE);
        let mut bytes = Vec::new();
        if !is_fit || file.take(LARGEST_FILE).read_to_end(&mut bytes).is_err() {
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
                self.add(shown, number + 1, line);
            }
        }
    }

    fn add(&mut self, shown: &str, number: usize, line: &[u8]) {
        if self.found.matches == self.limit || self.found.text.len() >= MOST_TEXT {
            self.found.is_cut = true;
            return;
        }
        let line = &line[..line.len().min(LONGEST_LINE * 2)];
        let line = text::cut(&text::one_line(&String::from_utf8_lossy(line)), LONGEST_LINE);
        self.found.text.push_str(&format!("{shown}:{number}: {line}\n"));
        self.found.matches += 1;
    }

    fn is_done(&self) -> bool {
        self.found.is_cut || self.budget.is_spent()
    }

    fn report(self, is_plain: bool) -> String {
        let Found { mut text, matches, skipped, is_cut } = self.found;
        let notes = [
            (matches == 0, "no match".to_owned()),
            (is_plain, "not a valid regular expression: searched as plain text".to_owned()),
            (is_cut, format!("only the first {matches} matches are shown")),
            (self.budget.is_spent(), "out of time: not all files were searched".to_owned()),
            (skipped > 0, format!("{skipped} files or folders were too large or not readable")),
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
