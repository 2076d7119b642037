//! Redacts text that arrives in pieces. Holds back only what may be the start of a secret, until it is clear whether it
//! is one.

use std::ops::Range;
use std::sync::Arc;

use super::unescape::MAX_ESCAPED_BYTE_LEN;
use super::{REDACTION_MARK, Redactor, nearest_char_boundary};

/// Minimum length of a tail that is held back because it is the start of a known value. Most words end in a character
/// that some key starts with, and sending up to three characters of a key does not reveal it.
pub(super) const MIN_HELD_PREFIX_LEN: usize = 4;
/// Length of the sent text that is retained, to recognize a secret that started there.
const RETAINED_SENT_BYTES: usize = 128;
/// Maximum length of text that is held back because of its format: a private key.
const MAX_HELD_BYTES: usize = 16 * 1024;
/// Above this size, the buffer is rescanned only after it has grown by a fraction: each scan covers the whole buffer,
/// and pieces are small.
const RESCAN_THRESHOLD_BYTES: usize = 4 * 1024;
const RESCAN_GROWTH_DIVISOR: usize = 16;

pub struct RedactionStream {
    redactor: Arc<Redactor>,
    raw: String,
    /// Length of the part of `raw` that was sent.
    sent: usize,
    /// End of the last masked secret.
    marked: usize,
    /// Length of `raw` at which it is scanned again.
    awaited: usize,
}

impl RedactionStream {
    pub fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor, raw: String::new(), sent: 0, marked: 0, awaited: 0 }
    }

    /// Adds a piece and returns the text that can be shown now, usually the piece itself.
    pub fn push(&mut self, piece: &str) -> String {
        self.raw.push_str(piece);
        if self.raw.len() < self.awaited {
            return String::new();
        }
        let open = self.redactor.find_open_start(&self.raw);
        let until =
            open.map_or(self.raw.len(), |from| nearest_char_boundary(&self.raw, from, false)).max(self.sent);
        self.emit_until(until)
    }

    /// Returns the text held back at the end. The next piece starts a new text.
    pub fn finish(&mut self) -> String {
        let rest = self.emit_until(self.raw.len());
        self.raw.clear();
        (self.sent, self.marked, self.awaited) = (0, 0, 0);
        rest
    }

    fn emit_until(&mut self, until: usize) -> String {
        let known = self.redactor.find_known(&self.raw);
        let looks = self.redactor.patterns.find_tokens(&self.raw);
        // A token is recognised by its start, so all of it is needed.
        let touching = self.earliest_open_span(&known, self.redactor.max_value_len()).into_iter();
        let needed = touching.chain(self.earliest_open_span(&looks, usize::MAX)).min();
        let mut spans = [known, looks].concat();
        spans.sort_unstable_by_key(|span| span.start);
        let mut out = String::new();
        for span in &spans {
            let (start, end) = (
                nearest_char_boundary(&self.raw, span.start, false),
                nearest_char_boundary(&self.raw, span.end, true),
            );
            if end <= self.sent || start >= until {
                continue;
            }
            out.push_str(&self.raw[self.sent..start.max(self.sent)]);
            // The rest of a secret that is masked already gets no second mark.
            if start >= self.marked {
                out.push_str(REDACTION_MARK);
            }
            (self.sent, self.marked) = (end, end);
        }
        if until > self.sent {
            out.push_str(&self.raw[self.sent..until]);
            self.sent = until;
        }
        self.discard_sent(needed);
        out
    }

    /// Returns the start of the first span that may continue, at most `furthest` bytes back.
    fn earliest_open_span(&self, spans: &[Range<usize>], furthest: usize) -> Option<usize> {
        let end = self.raw.len();
        let starts = spans.iter().filter(|span| span.end == end).map(|span| span.start);
        starts.min().map(|start| start.max(end.saturating_sub(furthest)))
    }

    /// Drops sent text, except what may still be the start of a secret.
    fn discard_sent(&mut self, needed: Option<usize>) {
        let behind = self.sent.saturating_sub(RETAINED_SENT_BYTES);
        let cut = nearest_char_boundary(&self.raw, needed.map_or(behind, |needed| needed.min(behind)), false);
        // Drops in steps: moving a few bytes per token would cost more than it saves.
        if cut >= RETAINED_SENT_BYTES {
            self.raw.drain(..cut);
            self.sent = self.sent.saturating_sub(cut);
            self.marked = self.marked.saturating_sub(cut);
        }
        let kept = self.raw.len();
        self.awaited = if kept > RESCAN_THRESHOLD_BYTES { kept + kept / RESCAN_GROWTH_DIVISOR } else { 0 };
    }
}

impl Redactor {
    /// Maximum encoded length of a known value.
    fn max_value_len(&self) -> usize {
        self.values.as_ref().map_or(0, |values| values.longest * MAX_ESCAPED_BYTE_LEN)
    }

    /// Returns where a secret may start that the text does not contain completely.
    fn find_open_start(&self, text: &str) -> Option<usize> {
        let known = self.values.as_ref().and_then(|values| values.find_partial_value(text.as_bytes()));
        let looks = self.patterns.find_open_start(text).filter(|from| text.len() - from <= MAX_HELD_BYTES);
        known.into_iter().chain(looks).min()
    }
}

impl super::KnownValues {
    /// Returns the first position from which the text is an incomplete form.
    fn find_partial_value(&self, text: &[u8]) -> Option<usize> {
        let tail = text.len().saturating_sub(self.longest * MAX_ESCAPED_BYTE_LEN);
        let escaped = self.find_escaped_prefix(&text[tail..]).map(|at| tail + at);
        let wrapped = self.find_wrapped_prefix(text);
        let plain = self.find_plain_prefix(text, MIN_HELD_PREFIX_LEN);
        plain.into_iter().chain(escaped).chain(wrapped).min()
    }

    pub(super) fn find_plain_prefix(&self, text: &[u8], least: usize) -> Option<usize> {
        let from = text.len().saturating_sub(self.longest.saturating_sub(1));
        let last = text.len().checked_sub(least)?;
        (from..=last).find(|at| self.first[usize::from(text[*at])] && self.is_value_prefix(&text[*at..]))
    }

    /// Like `find_plain_prefix`, for escaped text. An incomplete escape counts as one character.
    fn find_escaped_prefix(&self, text: &[u8]) -> Option<usize> {
        let mut first = None::<usize>;
        self.partial_escape_decoder().each_layer(text, &mut |layer| {
            let least = if layer.is_cut { MIN_HELD_PREFIX_LEN - 1 } else { MIN_HELD_PREFIX_LEN };
            let start =
                self.find_plain_prefix(&layer.bytes, least).map(|at| layer.source_range(at..at + 1).start);
            first = first.into_iter().chain(start).min();
        });
        first
    }

    /// The forms are sorted, so those that start with `tail` are adjacent.
    fn is_value_prefix(&self, tail: &[u8]) -> bool {
        let at = self.forms.partition_point(|form| form.as_slice() < tail);
        self.forms
            .get(at..)
            .into_iter()
            .flatten()
            .take_while(|form| form.starts_with(tail))
            .any(|form| form.len() > tail.len())
    }
}
