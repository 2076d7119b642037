//! Output of commands: text for people, or one JSON object with `--json`. Colors only on a terminal.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use polyclaw_domain::sanitize;
use serde::Serialize;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::failure::CommandFailure;

#[derive(Clone, Copy, Debug)]
pub struct CliOutput {
    pub json: bool,
    color: bool,
    /// Stdout is a terminal; control characters are escaped.
    is_seen: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextTone {
    Bold,
    Dim,
    Good,
    Warn,
    Bad,
}

impl TextTone {
    fn ansi_code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Good => "32",
            Self::Warn => "33",
            Self::Bad => "31",
        }
    }
}

impl CliOutput {
    pub fn new(json: bool) -> Self {
        Self { json, color: is_colored(&io::stdout()), is_seen: io::stdout().is_terminal() }
    }

    /// Prints `{"ok": value}` with `--json`, else the text.
    pub fn print_value(&self, value: &impl Serialize, text: impl FnOnce(&Self) -> String) -> io::Result<()> {
        if self.json {
            self.print_line(&json!({ "ok": value }).to_string())
        } else {
            self.print_line(&text(self))
        }
    }

    /// Prints one line, or nothing if the text is empty. A pipe that its reader closed, such as `head`, is not an error.
    pub fn print_line(&self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        ignore_broken_pipe(writeln!(io::stdout().lock(), "{}", self.visible_text(text.trim_end())))
    }

    fn visible_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match (self.is_seen, self.json || text.starts_with('{')) {
            (false, _) => Cow::Borrowed(text),
            (true, true) => sanitize::escape_hidden_json(text),
            (true, false) => sanitize::escape_hidden(text),
        }
    }

    /// Prints a piece of text as it arrives.
    pub fn print_piece(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        ignore_broken_pipe(out.write_all(self.visible_text(text).as_bytes()).and_then(|()| out.flush()))
    }

    pub fn paint(&self, tone: TextTone, text: &str) -> String {
        if self.color { format!("\x1b[{}m{text}\x1b[0m", tone.ansi_code()) } else { text.to_owned() }
    }

    /// Formats a table. Columns are as wide as their widest cell, except the last one.
    pub fn format_table(&self, head: &[&str], rows: &[Vec<String>]) -> String {
        let mut widths: Vec<usize> = head.iter().map(|cell| cell.width()).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let line = |cells: Vec<&str>| {
            let padded = cells.iter().zip(&widths).map(|(cell, width)| {
                let gap = width.saturating_sub(cell.width());
                format!("{cell}{}", " ".repeat(gap))
            });
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let mut lines = vec![self.paint(TextTone::Dim, &line(head.to_vec()))];
        lines.extend(rows.iter().map(|row| line(row.iter().map(String::as_str).collect())));
        lines.join("\n")
    }
}

/// Reports a failure as text on stderr, or as JSON on stdout.
pub fn report_failure(failure: &CommandFailure, json: bool) {
    if json {
        let _ = writeln!(io::stdout().lock(), "{}", as_json(failure));
        return;
    }
    let color = is_colored(&io::stderr());
    let paint = |tone: TextTone, text: &str| {
        if color { format!("\x1b[{}m{text}\x1b[0m", tone.ansi_code()) } else { text.to_owned() }
    };
    let mut out = io::stderr().lock();
    let message = sanitize::escape_hidden(&failure.message);
    let _ = writeln!(out, "{} {message} [{}]", paint(TextTone::Bad, "error:"), failure.code);
    if let Some(hint) = &failure.hint {
        let _ = writeln!(out, " {} {}", paint(TextTone::Dim, "hint:"), sanitize::escape_hidden(hint));
    }
}

/// Returns `{"error": {code, message, hint}}`, with details if there are any.
pub fn as_json(failure: &CommandFailure) -> Value {
    let mut error = json!({ "code": failure.code, "message": failure.message, "hint": failure.hint });
    if let Some(details) = &failure.details {
        error["details"] = Value::clone(details);
    }
    json!({ "error": error })
}

/// Returns the text of a field as its JSON has it, or a dash for null.
pub fn cell(field: &impl Serialize) -> String {
    cell_text(&serde_json::to_value(field).unwrap_or_default())
}

/// Returns the text of a JSON value, or a dash for null.
pub fn cell_text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => visible_line(text),
        other => other.to_string(),
    }
}

/// Escapes control characters in text of a model or a stranger that would control the terminal or change the writing
/// direction.
pub fn visible_line(text: &str) -> String {
    sanitize::visible_controls(text).into_owned()
}

fn is_colored(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn ignore_broken_pipe(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_columns_align_with_wide_characters() {
        let output = CliOutput { json: false, color: false, is_seen: false };
        let rows = [vec!["日本".into(), "x".into()], vec!["a".into(), "y".into()]];
        assert_eq!(output.format_table(&["id", "name"], &rows), "id    name\n日本  x\na     y");
    }
}
