//! Input history in the home: one JSON string per line, so that a multi-line message is one entry.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const RETAINED_HISTORY_LINES: usize = 500;

pub fn read_history(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    lines.drain(..lines.len().saturating_sub(RETAINED_HISTORY_LINES));
    lines
}

/// Appends a line. Errors are ignored: the chat works without its history.
pub fn append_history(path: &Path, line: &str) {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    if let (Ok(mut file), Ok(line)) = (file, serde_json::to_string(line)) {
        let _ = writeln!(file, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiline_history_is_read_back_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("chat_history");
        append_history(&path, "one");
        append_history(&path, "two\nlines \"quoted\"");
        assert_eq!(read_history(&path), ["one", "two\nlines \"quoted\""]);
        assert!(read_history(&dir.path().join("none")).is_empty());
    }
}
