//! The `read_file` tool: reads a text file, or a range of its lines.

use std::fs::File;
use std::io::{BufRead, BufReader};

use polyclaw_domain::tool::{ToolOutcome, ToolScope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::blocking::{self, WorkBudget};
use crate::error::{Error, Result};
use crate::workspace;

pub const TOOL_NAME: &str = "read_file";
const MAX_TEXT_BYTES: usize = 256 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFileArguments {
    /// The file, relative to the workspace.
    path: String,
    /// The first line to read, counted from 1. Default: 1.
    offset_line: Option<u64>,
    /// Maximum number of lines to read. Default: as many as fit.
    limit_lines: Option<u64>,
}

pub fn spec() -> ToolSpec {
    arguments::build_tool_spec::<ReadFileArguments>(
        TOOL_NAME,
        "Reads a text file. Long files are returned in parts of 256 KiB; a note at the end says how to continue.",
    )
}

pub async fn run(scope: &ToolScope, arguments: ReadFileArguments) -> Result<ToolOutcome> {
    let ReadFileArguments { path, offset_line, limit_lines } = arguments;
    let workspace = scope.workspace.clone();
    let open = move || {
        let place = workspace::resolve_path(&workspace, &path)?;
        Ok(OpenedText { file: place.open_file()?.0, display: place.display_path().to_owned() })
    };
    read_opened(open, (offset_line, limit_lines)).await
}

/// An open file and its name in messages.
pub struct OpenedText {
    pub file: File,
    pub display: String,
}

/// Reads lines of the file that `open` returns, starting at an offset.
pub async fn read_opened(
    open: impl FnOnce() -> Result<OpenedText> + Send + 'static,
    (offset_line, limit_lines): (Option<u64>, Option<u64>),
) -> Result<ToolOutcome> {
    let text = blocking::run_blocking(move |budget| {
        let window = LineWindow {
            first: offset_line.unwrap_or(1).max(1),
            lines: limit_lines.unwrap_or(u64::MAX).max(1),
        };
        read_lines(open()?, &window, budget)
    });
    Ok(ToolOutcome::ok(text.await?))
}

struct LineWindow {
    first: u64,
    lines: u64,
}

/// One line, as far as it was kept.
struct FileLine {
    bytes: Vec<u8>,
    is_cut: bool,
}

fn read_lines(text: OpenedText, window: &LineWindow, budget: &WorkBudget) -> Result<String> {
    let OpenedText { file, display } = text;
    let mut lines = BufReader::with_capacity(64 * 1024, file);
    let mut page = LinePage::default();
    let mut number = 0;
    while let Some(line) = next_line(&mut lines, budget).map_err(|error| error.into_error(&display))? {
        number += 1;
        if number < window.first {
            continue;
        }
        if number - window.first >= window.lines || !page.push_line(&line) {
            page.append_note(format!(
                "lines {} to {}; continue with offset_line {number}",
                window.first,
                number - 1
            ));
            return Ok(page.text);
        }
    }
    if number == 0 {
        page.append_note("the file is empty".to_owned());
    } else if number < window.first {
        return Err(Error::path(&display, format!("has only {number} lines")));
    }
    Ok(page.finish())
}

enum LineReadError {
    Read(std::io::Error),
    Spent(Error),
}

impl LineReadError {
    fn into_error(self, display: &str) -> Error {
        match self {
            Self::Read(source) => Error::io(display, source),
            Self::Spent(error) => error,
        }
    }
}

/// Returns the next line with its line ending. Keeps only the start of a very long line, so that a file of zeros cannot
/// fill the memory.
fn next_line(
    from: &mut impl BufRead,
    budget: &WorkBudget,
) -> std::result::Result<Option<FileLine>, LineReadError> {
    let mut line = FileLine { bytes: Vec::new(), is_cut: false };
    let mut seen = 0_usize;
    loop {
        budget.check_budget().map_err(LineReadError::Spent)?;
        let buffer = from.fill_buf().map_err(LineReadError::Read)?;
        if buffer.is_empty() {
            return Ok((seen > 0).then_some(line));
        }
        let end = buffer.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let piece = &buffer[..end.unwrap_or(buffer.len())];
        let room = MAX_TEXT_BYTES.saturating_sub(line.bytes.len()).min(piece.len());
        line.bytes.extend_from_slice(&piece[..room]);
        line.is_cut |= room < piece.len();
        seen += piece.len();
        let used = piece.len();
        from.consume(used);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

#[derive(Default)]
struct LinePage {
    text: String,
    is_lossy: bool,
    has_cut_line: bool,
}

impl LinePage {
    /// Adds a line. Returns false if it no longer fits. The first line always fits, truncated if necessary.
    fn push_line(&mut self, line: &FileLine) -> bool {
        let text = String::from_utf8_lossy(&line.bytes);
        let is_first = self.text.is_empty();
        if !is_first && self.text.len() + text.len() > MAX_TEXT_BYTES {
            return false;
        }
        let end = text.floor_char_boundary(MAX_TEXT_BYTES);
        self.has_cut_line |= line.is_cut || end < text.len();
        self.is_lossy |= !line.is_cut && std::str::from_utf8(&line.bytes).is_err();
        self.text.push_str(&text[..end]);
        true
    }

    fn append_note(&mut self, note: String) {
        let text = std::mem::take(self).finish();
        self.text = text;
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(&format!("[{note}]"));
    }

    fn finish(mut self) -> String {
        let notes = [
            (self.has_cut_line, "\n[this line is longer than 256 KiB: the rest of it is not shown]\n"),
            (self.is_lossy, "\n[not valid UTF-8: invalid bytes are shown as \u{fffd}]\n"),
        ];
        for (_, note) in notes.iter().filter(|(applies, _)| *applies) {
            self.text.push_str(note);
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(content: &[u8], first: u64, lines: u64) -> Result<String> {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("f"), content).unwrap();
        read_lines(opened(home.path()), &LineWindow { first, lines }, &WorkBudget::ample())
    }

    fn opened(home: &std::path::Path) -> OpenedText {
        OpenedText { file: File::open(home.join("f")).unwrap(), display: "f".to_owned() }
    }

    #[test]
    fn line_window_names_the_next_offset() {
        assert_eq!(page(b"a\nb\nc\n", 1, u64::MAX).unwrap(), "a\nb\nc\n");
        assert_eq!(page(b"a\nb\nc\n", 2, 1).unwrap(), "b\n[lines 2 to 2; continue with offset_line 3]");
        assert_eq!(page(b"a\nb\nc", 3, 5).unwrap(), "c");
        assert_eq!(page(b"", 1, 5).unwrap(), "[the file is empty]");
        assert!(page(b"a\nb\n", 4, 1).unwrap_err().to_string().contains("only 2 lines"));
    }

    #[test]
    fn long_file_is_read_completely_by_following_offsets() {
        let content: String = (0..60_000).map(|n| format!("line {n}\n")).collect();
        let (mut first, mut got) = (1, String::new());
        loop {
            let text = page(content.as_bytes(), first, u64::MAX).unwrap();
            assert!(text.len() <= MAX_TEXT_BYTES + 200);
            let Some((part, rest)) = text.split_once("[lines ") else {
                got.push_str(&text);
                break;
            };
            got.push_str(part);
            first = rest.rsplit(' ').next().unwrap().trim_end_matches(']').parse().unwrap();
        }
        assert!(got == content);
    }

    #[test]
    fn huge_line_is_cut_with_a_note() {
        let mut content = vec![b'x'; 3 * MAX_TEXT_BYTES];
        content.extend_from_slice(b"\nnext\n");
        let text = page(&content, 1, u64::MAX).unwrap();
        assert!(text.len() < MAX_TEXT_BYTES + 300 && text.contains("the rest of it is not shown"));
        assert!(text.ends_with("continue with offset_line 2]"), "{}", &text[text.len() - 80..]);
    }

    #[test]
    fn invalid_utf8_in_file_is_marked() {
        let text = page(b"ok\n\xff\xfe\n", 1, u64::MAX).unwrap();
        assert!(text.starts_with("ok\n\u{fffd}\u{fffd}\n") && text.contains("not valid UTF-8"));
        let noise = page(&vec![0xff; 2 * MAX_TEXT_BYTES], 1, u64::MAX).unwrap();
        assert!(noise.len() < MAX_TEXT_BYTES + 300);
    }

    #[test]
    fn reading_stops_when_time_is_up() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("f"), "a").unwrap();
        let outcome =
            read_lines(opened(home.path()), &LineWindow { first: 1, lines: 1 }, &WorkBudget::empty());
        assert!(matches!(outcome, Err(Error::OutOfTime(_))));
    }
}
