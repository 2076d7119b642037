//! Text that arrives in pieces. A secret cut in two is still one: what may be the start of a secret is held back until
//! it is clear what it is, and nothing else is.

use std::ops::Range;
use std::sync::Arc;

use super::unescape::MAX_ESCAPED_BYTE_LEN;
use super::{REDACTION_MARK, Redactor, nearest_char_boundary};

/// A tail that is the start of a known value is held from this length on. Most words end in a letter some key begins
/// with; up to three letters of a key that have gone out are not the key.
const MIN_HELD_PREFIX_LEN: usize = 4;
/// What went out is kept so far back, to recognise what began there.
const RETAINED_SENT_BYTES: usize = 128;
/// The longest thing that is waited for by its looks: a private key.
const MAX_HELD_BYTES: usize = 16 * 1024;
/// Where more than this is kept, it is looked at again when it has grown by a part of itself: a look goes through all of
/// it, and pieces are small.
const RESCAN_THRESHOLD_BYTES: usize = 4 * 1024;
const RESCAN_GROWTH_DIVISOR: usize = 16;

pub struct RedactionStream {
    redactor: Arc<Redactor>,
    raw: String,
    /// How much of `raw` went out.
    sent: usize,
    /// The end of the last secret that was marked.
    marked: usize,
    /// How long `raw` is before it is looked at again.
    awaited: usize,
}

impl RedactionStream {
    pub fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor, raw: String::new(), sent: 0, marked: 0, awaited: 0 }
    }

    /// What of the stream can be shown with this piece. Mostly that is the piece.
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

    /// What was held back at the end. The next piece begins a new text.
    pub fn finish(&mut self) -> String {
        let rest = self.emit_until(self.raw.len());
        self.raw.clear();
        (self.sent, self.marked, self.awaited) = (0, 0, 0);
        rest
    }

    fn emit_until(&mut self, until: usize) -> String {
        let known = self.redactor.find_known(&self.raw);
        let looks = self.redactor.patterns.find_tokens(&self.raw);
        // What looks like a key is known by its start alone.
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
            // The rest of a secret that has its mark already.
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

    /// Where the first of these begins that may go on, and at most so far back.
    fn earliest_open_span(&self, spans: &[Range<usize>], furthest: usize) -> Option<usize> {
        let end = self.raw.len();
        let starts = spans.iter().filter(|span| span.end == end).map(|span| span.start);
        starts.min().map(|start| start.max(end.saturating_sub(furthest)))
    }

    /// Keeps what may still be the beginning of something.
    fn discard_sent(&mut self, needed: Option<usize>) {
        let behind = self.sent.saturating_sub(RETAINED_SENT_BYTES);
        let cut = nearest_char_boundary(&self.raw, needed.map_or(behind, |needed| needed.min(behind)), false);
        // In steps: moving a few bytes for every token would cost more than it saves.
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
    /// The longest that a known value gets.
    fn max_value_len(&self) -> usize {
        self.values.as_ref().map_or(0, |values| values.longest * MAX_ESCAPED_BYTE_LEN)
    }

    /// Where the end of a text may be the start of a secret.
    fn find_open_start(&self, text: &str) -> Option<usize> {
        let known = self.values.as_ref().and_then(|values| values.find_partial_value(text.as_bytes()));
        let looks = self.patterns.find_open_start(text).filter(|from| text.len() - from <= MAX_HELD_BYTES);
        known.into_iter().chain(looks).min()
    }
}

impl super::KnownValues {
    /// The first place from which on the text is the start of a form, and not yet all of it.
    fn find_partial_value(&self, text: &[u8]) -> Option<usize> {
        let tail = text.len().saturating_sub(self.longest * MAX_ESCAPED_BYTE_LEN);
        let escaped = self.find_escaped_prefix(&text[tail..]).map(|at| tail + at);
        self.find_plain_prefix(text, MIN_HELD_PREFIX_LEN).into_iter().chain(escaped).min()
    }

    fn find_plain_prefix(&self, text: &[u8], least: usize) -> Option<usize> {
        let from = text.len().saturating_sub(self.longest.saturating_sub(1));
        let last = text.len().checked_sub(least)?;
        (from..=last).find(|at| self.first[usize::from(text[*at])] && self.is_value_prefix(&text[*at..]))
    }

    /// The same where letters are written with escapes. One that is not whole yet counts for a letter.
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

    /// The forms are sorted, so those that begin with `tail` stand together.
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
