//! Finds values that are written with escapes, such as `%2d`, `\x2d`, `\u002d` or `&#45;`, for some or all characters, or
//! with escapes of escapes. There are too many spellings to list: the text is decoded and then searched.

use std::ops::Range;

use aho_corasick::{AhoCorasick, Input};

use super::unescape::{EscapeDecoder, EscapeKinds, SEPARATE_KINDS, begins_escape, parse_escape};

/// Starts of optional escapes. Escapes that JSON requires are part of the forms of a value.
const ESCAPE_STARTS: [&str; 11] =
    ["%", "\\u", "\\x", "\\/", "\\'", "&#", "&amp;", "&lt;", "&gt;", "&quot;", "&apos;"];
/// The characters that an escape of a part of an escape decodes to.
const ESCAPE_BYTES: &[u8] = b"%\\ux&#;0123456789abcdefABCDEF";
/// Distance behind an escape within which the next one is searched byte by byte.
const NEAR_SCAN_LEN: usize = 12;
/// Maximum distance around an escape in which kinds of escapes are decoded separately, in characters of a value. Longer
/// values are files, which take long to search and start with dashes or a brace, which form no escape with a preceding
/// character.
const MAX_KIND_SEARCH_LEN: usize = 128;

/// Finds escapes that may be part of a value.
pub(super) struct EscapeFinder {
    finder: Option<AhoCorasick>,
    /// Bytes of values and of escapes. Other characters are irrelevant.
    telling: [bool; 256],
}

impl EscapeFinder {
    pub fn new(forms: &[Vec<u8>]) -> Self {
        let mut telling = [false; 256];
        forms.iter().flatten().chain(ESCAPE_BYTES).for_each(|byte| telling[usize::from(*byte)] = true);
        Self { finder: AhoCorasick::new(ESCAPE_STARTS).ok(), telling }
    }

    /// Returns the regions of a text that contain escapes, extended by `reach` on both sides. Most text has none.
    fn find_regions(&self, text: &[u8], reach: usize) -> Vec<Range<usize>> {
        let (mut regions, mut from) = (Vec::<Range<usize>>::new(), 0);
        while let Some(at) = self.next_start(text, from) {
            let (length, is_telling) = self.classify_start(&text[at..]);
            from = at + length;
            if !is_telling {
                continue;
            }
            add_region(&mut regions, at.saturating_sub(reach)..text.len().min(at + reach));
        }
        regions
    }

    /// Returns the next possible start of an escape. Close to the last one it is found without the automaton, because
    /// escapes cluster.
    fn next_start(&self, text: &[u8], from: usize) -> Option<usize> {
        let near = text.len().min(from + NEAR_SCAN_LEN);
        let found = || self.finder.as_ref()?.find(Input::new(text).span(near..text.len()));
        match text[from..near].iter().position(begins_escape) {
            Some(at) => Some(from + at),
            None => found().map(|found| found.start()),
        }
    }

    /// Returns how far to advance, and whether this is a relevant escape.
    fn classify_start(&self, text: &[u8]) -> (usize, bool) {
        let is_head = matches!(text, [b'%' | b'&', ..] | [b'\\', b'u' | b'x' | b'/' | b'\'', ..]);
        match parse_escape(text) {
            Ok((length, character)) if is_head => (length, self.telling[usize::from(character.first_byte())]),
            _ => (1, false),
        }
    }
}

impl super::KnownValues {
    /// Returns the spans of values that contain an escape.
    pub(super) fn find_escaped(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        let near = self.longest.min(MAX_KIND_SEARCH_LEN);
        // Between two escapes a value has at most its own characters, some of them preceded by a backslash.
        let regions = self.heads.find_regions(text, 2 * near);
        self.search_regions(text, &regions, &self.escape_decoder(&SEPARATE_KINDS), &mut spans);
        if self.longest > near {
            let wide = widen_regions(regions, 2 * (self.longest - near), text.len());
            self.search_regions(text, &wide, &self.escape_decoder(&[]), &mut spans);
        }
        spans
    }

    fn search_regions(
        &self,
        text: &[u8],
        regions: &[Range<usize>],
        peeler: &EscapeDecoder<'_>,
        spans: &mut Vec<Range<usize>>,
    ) {
        for region in regions {
            peeler.each_layer(&text[region.clone()], &mut |layer| {
                let found = self.find_plain(&layer.bytes).into_iter().map(|part| layer.source_range(part));
                spans.extend(found.map(|part| region.start + part.start..region.start + part.end));
            });
        }
    }

    fn escape_decoder<'a>(&'a self, apart: &'a [EscapeKinds]) -> EscapeDecoder<'a> {
        EscapeDecoder { telling: &self.heads.telling, apart, goes_on: false }
    }

    /// Returns the decoder for a text that continues.
    pub(super) fn partial_escape_decoder(&self) -> EscapeDecoder<'_> {
        EscapeDecoder { goes_on: true, ..self.escape_decoder(&SEPARATE_KINDS) }
    }
}

fn widen_regions(regions: Vec<Range<usize>>, by: usize, end: usize) -> Vec<Range<usize>> {
    let mut wide = Vec::<Range<usize>>::new();
    for region in regions {
        add_region(&mut wide, region.start.saturating_sub(by)..end.min(region.end + by));
    }
    wide
}

/// Adds a region and merges it with the last one if they touch.
fn add_region(regions: &mut Vec<Range<usize>>, region: Range<usize>) {
    match regions.last_mut() {
        Some(last) if region.start <= last.end => last.end = region.end,
        _ => regions.push(region),
    }
}
