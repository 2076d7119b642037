//! Finds values in base64 or hex that are split into lines, as in the output of `base64` and in mail.

use std::ops::Range;

use super::stream::MIN_HELD_PREFIX_LEN;

/// Minimum number of characters before the end of a continued line. Ordinary words have fewer.
const MIN_WRAPPED_LINE_LEN: usize = 16;
/// Maximum indentation of a continued line.
const MAX_INDENT_LEN: usize = 16;
/// Factor by which line breaks can lengthen a value, for lines of the minimum length.
const MAX_WRAPPED_GROWTH: usize = 3;

/// Consecutive lines of encoded text, without their line breaks.
struct JoinedLines {
    bytes: Vec<u8>,
    /// For each line, its start in `bytes` and its position in the source.
    lines: Vec<(usize, usize)>,
    /// Whether the text ends within these lines.
    is_open: bool,
}

impl JoinedLines {
    /// Joins the lines around the break at `at` and the following ones. Also returns where to continue. `None` if an
    /// ordinary line ends at this break.
    fn from_break(text: &[u8], at: usize) -> Option<(Self, usize)> {
        let before = text[..at].iter().rev().take_while(|byte| is_ascii_alpha(**byte)).count();
        if before < MIN_WRAPPED_LINE_LEN {
            return None;
        }
        let start = at - before;
        let mut joined = Self { bytes: text[start..at].to_vec(), lines: vec![(0, start)], is_open: false };
        let (mut end, mut line_length) = (at, before);
        while let Some(next) = break_end(&text[end..]).map(|length| end + length) {
            let length = text[next..].iter().take_while(|byte| is_ascii_alpha(**byte)).count();
            joined.is_open = next + length == text.len();
            if line_length < MIN_WRAPPED_LINE_LEN || length == 0 {
                break;
            }
            joined.lines.push((joined.bytes.len(), next));
            joined.bytes.extend_from_slice(&text[next..next + length]);
            (end, line_length) = (next + length, length);
        }
        Some((joined, end.max(at + 1)))
    }

    /// Returns the position of a byte in the source.
    fn source(&self, at: usize) -> usize {
        let line = self.lines.partition_point(|(start, _)| *start <= at).saturating_sub(1);
        self.lines.get(line).map_or(0, |(start, written)| written + at - start)
    }
}

impl super::KnownValues {
    /// Returns the spans of values that contain a line break.
    pub(super) fn find_wrapped(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        each_block(text, &mut |joined| {
            let found = self.find_plain(&joined.bytes).into_iter();
            spans.extend(found.map(|part| joined.source(part.start)..joined.source(part.end - 1) + 1));
        });
        spans
    }

    /// Returns where an incomplete value may start at the end of the text.
    pub(super) fn find_wrapped_prefix(&self, text: &[u8]) -> Option<usize> {
        let tail = text.len().saturating_sub(self.longest * MAX_WRAPPED_GROWTH);
        let mut first = None;
        each_block(&text[tail..], &mut |joined| {
            if joined.is_open {
                let start = self.find_plain_prefix(&joined.bytes, MIN_HELD_PREFIX_LEN);
                first = first.or(start.map(|at| tail + joined.source(at)));
            }
        });
        first
    }
}

fn each_block(text: &[u8], look: &mut dyn FnMut(&JoinedLines)) {
    let mut at = 0;
    while let Some(found) = text[at..].iter().position(|byte| matches!(byte, b'\n' | b'\r' | b'\\')) {
        let place = at + found;
        at = match break_end(&text[place..]).and_then(|_| JoinedLines::from_break(text, place)) {
            Some((joined, end)) => {
                look(&joined);
                end
            }
            None => place + 1,
        };
    }
}

/// Returns the length of the line break at the start of a text, literal or escaped as in JSON, with the indentation
/// after it.
fn break_end(text: &[u8]) -> Option<usize> {
    const BREAKS: [&[u8]; 4] = [b"\r\n", b"\n", b"\\r\\n", b"\\n"];
    let length = BREAKS.iter().find(|end| text.starts_with(end)).map(|end| end.len());
    // A text may end within a line break.
    let is_cut = || matches!(text, b"\r" | b"\\" | b"\\r" | b"\\r\\");
    let length = length.or_else(|| is_cut().then_some(text.len()))?;
    let blanks = text[length..].iter().take(MAX_INDENT_LEN);
    Some(length + blanks.take_while(|byte| matches!(byte, b' ' | b'\t')).count())
}

fn is_ascii_alpha(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}
