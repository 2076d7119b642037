//! Values written with escapes: `%2d`, `\x2d`, `\u002d` for some of their letters or for all, and escapes of escapes. There
//! are too many ways to write one to list them: escapes are taken off, and what is left is looked through.

use std::ops::Range;

use aho_corasick::{AhoCorasick, Input};

/// Text in JSON in an address in JSON, and one more.
const LAYERS: usize = 4;
/// How many bytes a byte of a value takes where each layer escaped it again.
pub(super) const WIDEST: usize = 16;

/// How escapes begin that nobody has to write. Those that JSON has to are in the forms of a value.
const HEADS: [&str; 4] = ["%", "\\u", "\\x", "\\/"];
/// How far behind one escape the next is looked for byte by byte.
const NEAR: usize = 12;

/// Finds them.
pub(super) struct Heads {
    finder: Option<AhoCorasick>,
    /// The bytes of values, and those that begin an escape of an escape. Other letters are of no concern.
    telling: [bool; 256],
}

impl Heads {
    pub fn new(forms: &[Vec<u8>]) -> Self {
        let mut telling = [false; 256];
        forms.iter().flatten().chain(b"%\\").for_each(|byte| telling[usize::from(*byte)] = true);
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
            let (start, end) = (at.saturating_sub(reach), (at + reach).min(text.len()));
            match regions.last_mut() {
                Some(last) if start <= last.end => last.end = end,
                _ => regions.push(start..end),
            }
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
        let is_head = matches!(text, [b'%', ..] | [b'\\', b'u' | b'x' | b'/', ..]);
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
        // Between two escapes a value has at most its own letters, and some of these with a backslash.
        for region in self.heads.regions(text, 2 * self.longest) {
            let mut peeled = Peeled::new(&text[region.clone()]);
            while peeled.peel() {
                let found = self.plain_in(&peeled.bytes).into_iter().map(|part| peeled.source(part));
                spans.extend(found.map(|part| region.start + part.start..region.start + part.end));
            }
        }
        spans
    }
}

/// A text without its outer escapes, and where all of it came from.
pub(super) struct Peeled {
    bytes: Vec<u8>,
    /// Where an escape begins that the end of the text cuts off.
    cut: Option<usize>,
    /// What was taken off, the outermost first.
    layers: Vec<Vec<Escape>>,
}

/// An escape as it was written, and what became of it.
struct Escape {
    written: Range<usize>,
    meant: Range<usize>,
}

impl Peeled {
    pub fn new(text: &[u8]) -> Self {
        Self { bytes: text.to_vec(), cut: None, layers: Vec::new() }
    }

    /// Without an escape that is not whole yet.
    pub fn whole(&self) -> &[u8] {
        &self.bytes[..self.cut.unwrap_or(self.bytes.len())]
    }

    pub fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// Takes a layer off; false where there is none.
    pub fn peel(&mut self) -> bool {
        let is_last = self.layers.len() == LAYERS || self.layers.last().is_some_and(Vec::is_empty);
        if is_last || !self.bytes.iter().any(begins) {
            return false;
        }
        let text = std::mem::take(&mut self.bytes);
        let mut escapes = Vec::new();
        (self.cut, self.bytes) = (None, Vec::with_capacity(text.len()));
        let mut at = 0;
        while let Some(plain) = text[at..].iter().position(begins) {
            self.bytes.extend_from_slice(&text[at..at + plain]);
            at += plain;
            at += self.take(&text, at, &mut escapes);
        }
        self.bytes.extend_from_slice(&text[at..]);
        self.layers.push(escapes);
        self.is_cut() || self.layers.last().is_some_and(|escapes| !escapes.is_empty())
    }

    /// Takes an escape, or what only begins like one; how much that was.
    fn take(&mut self, text: &[u8], at: usize, escapes: &mut Vec<Escape>) -> usize {
        let start = self.bytes.len();
        match read(&text[at..]) {
            Ok((length, letter)) => {
                letter.push(&mut self.bytes);
                escapes.push(Escape { written: at..at + length, meant: start..self.bytes.len() });
                length
            }
            Err(not) => {
                self.cut = self.cut.or((not == Not::Yet).then_some(start));
                self.bytes.push(text[at]);
                1
            }
        }
    }

    /// Where a part of it stands in the text as it was written.
    pub fn source(&self, part: Range<usize>) -> Range<usize> {
        let outward =
            |part: Range<usize>, layer: &Vec<Escape>| start_in(layer, part.start)..end_in(layer, part.end);
        self.layers.iter().rev().fold(part, outward)
    }
}

fn start_in(layer: &[Escape], at: usize) -> usize {
    match layer[..layer.partition_point(|escape| escape.meant.start <= at)].last() {
        Some(escape) if at < escape.meant.end => escape.written.start,
        Some(escape) => escape.written.end + at - escape.meant.end,
        None => at,
    }
}

fn end_in(layer: &[Escape], at: usize) -> usize {
    match layer[..layer.partition_point(|escape| escape.meant.start < at)].last() {
        Some(escape) if at <= escape.meant.end => escape.written.end,
        Some(escape) => escape.written.end + at - escape.meant.end,
        None => at,
    }
}

/// What a value means that has escapes of its own, all of them taken off; none where it has none.
pub(super) fn meant(value: &str) -> Option<String> {
    let mut peeled = Peeled::new(value.as_bytes());
    while peeled.peel() {}
    String::from_utf8(peeled.bytes).ok().filter(|meant| meant != value)
}

enum Letter {
    Byte(u8),
    Char(char),
}

impl Letter {
    fn push(self, out: &mut Vec<u8>) {
        match self {
            Self::Byte(byte) => out.push(byte),
            Self::Char(letter) => out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }

    fn first(&self) -> u8 {
        match self {
            Self::Byte(byte) => *byte,
            Self::Char(letter) => letter.encode_utf8(&mut [0; 4]).as_bytes()[0],
        }
    }
}

/// Why there is no escape.
#[derive(PartialEq, Eq)]
enum Not {
    /// The text ends in it.
    Yet,
    Ever,
}

fn begins(byte: &u8) -> bool {
    matches!(byte, b'%' | b'\\')
}

/// The escape a text begins with: its length, and what it means.
fn read(text: &[u8]) -> Result<(usize, Letter), Not> {
    match text {
        [b'%', digits @ ..] => Ok((3, Letter::Byte(number(digits, 2)?.to_be_bytes()[1]))),
        [b'\\', b'x', digits @ ..] => Ok((4, Letter::Byte(number(digits, 2)?.to_be_bytes()[1]))),
        [b'\\', b'u', digits @ ..] => unicode(digits),
        [b'\\', sign, ..] => Ok((2, Letter::Byte(simple(*sign).ok_or(Not::Ever)?))),
        [b'\\'] => Err(Not::Yet),
        _ => Err(Not::Ever),
    }
}

fn simple(sign: u8) -> Option<u8> {
    Some(match sign {
        b'"' | b'\'' | b'\\' | b'/' => sign,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'f' => 0x0c,
        _ => return None,
    })
}

/// What follows `\u`: a letter, or half of one, with the other half in an escape of its own.
fn unicode(digits: &[u8]) -> Result<(usize, Letter), Not> {
    let first = number(digits, 4)?;
    if let Some(letter) = char::from_u32(first.into()) {
        return Ok((6, Letter::Char(letter)));
    }
    match &digits[4..] {
        [b'\\', b'u', digits @ ..] => {
            let pair = char::decode_utf16([first, number(digits, 4)?]).next();
            Ok((12, Letter::Char(pair.and_then(Result::ok).ok_or(Not::Ever)?)))
        }
        [] | [b'\\'] => Err(Not::Yet),
        _ => Err(Not::Ever),
    }
}

fn number(text: &[u8], digits: usize) -> Result<u16, Not> {
    let given = &text[..digits.min(text.len())];
    let add = |sum: u16, digit: &u8| Some(sum << 4 | u16::try_from(char::from(*digit).to_digit(16)?).ok()?);
    match given.iter().try_fold(0, add) {
        Some(number) if given.len() == digits => Ok(number),
        Some(_) => Err(Not::Yet),
        None => Err(Not::Ever),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layers(text: &str) -> Vec<String> {
        let mut peeled = Peeled::new(text.as_bytes());
        let mut seen = Vec::new();
        while peeled.peel() {
            seen.push(String::from_utf8_lossy(peeled.whole()).into_owned());
        }
        seen
    }

    #[test]
    fn layer_after_layer_is_taken_off() {
        for (text, expected) in [
            (r"a\u002db\x2Dc%2dd", &["a-b-c-d"][..]),
            (r"a\\u002db", &[r"a\u002db", "a-b"]),
            ("a%255c%75002db", &[r"a%5cu002db", r"a\u002db", "a-b"]),
            (r#"\"\\\/\n\'"#, &["\"\\/\n'", "\"/\n'"]),
            (r"\ud83d\ude00\u00fc%C3%BC", &["😀üü"]),
            (r"100% \q \uzzzz \ud83dx %g1", &[]),
            ("plain", &[]),
        ] {
            assert_eq!(layers(text), expected, "{text}");
        }
    }

    #[test]
    fn an_escape_that_is_not_whole_is_left_out() {
        for cut in ["%", "%2", r"\", r"\u", r"\u002", r"\x", r"\x2", r"\ud83d", r"\ud83d\", r"\ud83d\ude0"] {
            assert_eq!(layers(&format!("ab{cut}")), ["ab"], "{cut}");
        }
    }

    #[test]
    fn a_part_is_found_where_it_was_written() {
        let text = r"x%2525\\u002dy\u00fcz";
        let mut peeled = Peeled::new(text.as_bytes());
        while peeled.peel() {}
        assert_eq!(peeled.bytes, "x%-yüz".as_bytes());
        for (part, written) in [
            (0..1, "x"),
            (1..2, "%2525"),
            (2..3, r"\\u002d"),
            (0..4, r"x%2525\\u002dy"),
            (4..6, r"\u00fc"),
            (6..7, "z"),
        ] {
            assert_eq!(&text[peeled.source(part.clone())], written, "{part:?}");
        }
    }
}
