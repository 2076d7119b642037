//! Values written with escapes: `%2d`, `\x2d`, `\u002d` for some of their letters or for all, and escapes of escapes. There
//! are too many ways to write one to list them: escapes are taken off, and what is left is looked through.

use std::ops::Range;

use aho_corasick::{AhoCorasick, Input};

use super::peel::{APART, Kinds, Peeler, begins, read};

/// How escapes begin that nobody has to write. Those that JSON has to are in the forms of a value.
const HEADS: [&str; 5] = ["%", "\\u", "\\x", "\\/", "\\'"];
/// What an escape of a part of an escape stands for.
const PARTS: &[u8] = b"%\\ux0123456789abcdefABCDEF";
/// How far behind one escape the next is looked for byte by byte.
const NEAR: usize = 12;
/// How far around an escape kinds of escapes are told apart, in letters of a value. What is longer is a file, and takes long
/// to look through; it begins with dashes or a brace, of which no sign before it makes an escape.
const TOLD_APART: usize = 128;

/// Finds them.
pub(super) struct Heads {
    finder: Option<AhoCorasick>,
    /// The bytes of values, and those of escapes. Other letters are of no concern.
    telling: [bool; 256],
}

impl Heads {
    pub fn new(forms: &[Vec<u8>]) -> Self {
        let mut telling = [false; 256];
        forms.iter().flatten().chain(PARTS).for_each(|byte| telling[usize::from(*byte)] = true);
        Self { finder: AhoCorasick::new(HEADS).ok(), telling }
    }

    /// The parts of a text with escapes in them, `reach` to both sides of each. Most text has none.
    fn regions(&self, text: &[u8], reach: usize) -> Vec<Range<usize>> {
        let (mut regions, mut from) = (Vec::<Range<usize>>::new(), 0);
        while let Some(at) = self.next(text, from) {
            let (length, is_telling) = self.judge(&text[at..]);
            from = at + length;
            if !is_telling {
                continue;
            }
            add(&mut regions, at.saturating_sub(reach)..text.len().min(at + reach));
        }
        regions
    }

    /// The next head, or what begins like one. Where one was, more are near: those are found without asking the finder.
    fn next(&self, text: &[u8], from: usize) -> Option<usize> {
        let near = text.len().min(from + NEAR);
        let found = || self.finder.as_ref()?.find(Input::new(text).span(near..text.len()));
        match text[from..near].iter().position(begins) {
            Some(at) => Some(from + at),
            None => found().map(|found| found.start()),
        }
    }

    /// How far to go on from here, and whether this is a head of any concern.
    fn judge(&self, text: &[u8]) -> (usize, bool) {
        let is_head = matches!(text, [b'%', ..] | [b'\\', b'u' | b'x' | b'/' | b'\'', ..]);
        match read(text) {
            Ok((length, letter)) if is_head => (length, self.telling[usize::from(letter.first())]),
            _ => (1, false),
        }
    }
}

impl super::Values {
    /// Where values are that have an escape in them.
    pub(super) fn escaped_in(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        let near = self.longest.min(TOLD_APART);
        // Between two escapes a value has at most its own letters, and some of these with a backslash.
        let regions = self.heads.regions(text, 2 * near);
        self.look_through(text, &regions, &self.peeler(&APART), &mut spans);
        if self.longest > near {
            let wide = widened(regions, 2 * (self.longest - near), text.len());
            self.look_through(text, &wide, &self.peeler(&[]), &mut spans);
        }
        spans
    }

    fn look_through(
        &self,
        text: &[u8],
        regions: &[Range<usize>],
        peeler: &Peeler<'_>,
        spans: &mut Vec<Range<usize>>,
    ) {
        for region in regions {
            peeler.each_layer(&text[region.clone()], &mut |layer| {
                let found = self.plain_in(&layer.bytes).into_iter().map(|part| layer.source(part));
                spans.extend(found.map(|part| region.start + part.start..region.start + part.end));
            });
        }
    }

    fn peeler<'a>(&'a self, apart: &'a [Kinds]) -> Peeler<'a> {
        Peeler { telling: &self.heads.telling, apart, goes_on: false }
    }

    /// For a text that goes on.
    pub(super) fn peeler_for_a_start(&self) -> Peeler<'_> {
        Peeler { goes_on: true, ..self.peeler(&APART) }
    }
}

fn widened(regions: Vec<Range<usize>>, by: usize, end: usize) -> Vec<Range<usize>> {
    let mut wide = Vec::<Range<usize>>::new();
    for region in regions {
        add(&mut wide, region.start.saturating_sub(by)..end.min(region.end + by));
    }
    wide
}

/// Those that touch become one.
fn add(regions: &mut Vec<Range<usize>>, region: Range<usize>) {
    match regions.last_mut() {
        Some(last) if region.start <= last.end => last.end = region.end,
        _ => regions.push(region),
    }
}
