//! Takes escapes off a text, layer after layer, and knows where all that is left was written.

use std::ops::Range;

/// Text in JSON in an address in JSON, and one more.
pub(super) const LAYERS: usize = 4;
/// How many bytes a byte of a value takes: two layers wrote each with `\u`.
pub(super) const WIDEST: usize = 6 * 6;

/// Which escapes are taken off.
pub(super) type Kinds = u8;

const PERCENT: Kinds = 1;
/// `\n` and the like.
const CONTROL: Kinds = 2;
/// Every other with a backslash.
const BACKSLASH: Kinds = 4;
const ALL: Kinds = PERCENT | CONTROL | BACKSLASH;
/// A sign right before a value makes an escape of its first letters, which is none: where a layer has several kinds, some
/// are taken off without the others too.
pub(super) const APART: [Kinds; 3] = [PERCENT, BACKSLASH | CONTROL, PERCENT | BACKSLASH];

/// Takes escapes off.
pub(super) struct Peeler<'a> {
    /// Which kinds are taken off by themselves, too.
    pub apart: &'a [Kinds],
    /// An escape of any other letter is left as it is: it is part of no value, and may be none.
    pub telling: &'a [bool; 256],
    /// More text follows: an escape that the end cuts off may become one.
    pub goes_on: bool,
}

/// A text without its outer escapes, and where all of it came from.
pub(super) struct Layer<'a> {
    pub bytes: Vec<u8>,
    /// Whether the end was left out, here or further out: an escape that is not whole yet.
    pub is_cut: bool,
    outer: Option<&'a Layer<'a>>,
    depth: usize,
    escapes: Vec<Escape>,
    /// Of the escapes, and of the one that is not whole yet.
    kinds: Kinds,
}

/// An escape as it was written, and what became of it.
struct Escape {
    written: Range<usize>,
    meant: Range<usize>,
}

impl Peeler<'_> {
    /// Shows what is left of a text, layer after layer.
    pub fn each_layer(&self, text: &[u8], look: &mut dyn FnMut(&Layer<'_>)) {
        self.descend(text, None, ALL, look);
    }

    fn descend(
        &self,
        text: &[u8],
        outer: Option<&Layer<'_>>,
        kinds: Kinds,
        look: &mut dyn FnMut(&Layer<'_>),
    ) {
        if outer.is_some_and(|outer| outer.depth == LAYERS) || !text.iter().any(begins) {
            return;
        }
        let layer = self.peel(text, outer, kinds);
        if layer.kinds == 0 {
            return;
        }
        look(&layer);
        // Who escapes with percent signs does so last.
        let next = if kinds == PERCENT { BACKSLASH | CONTROL } else { kinds };
        self.descend(&layer.bytes, Some(&layer), next, look);
        let apart = self.apart.iter().filter(|some| layer.kinds & **some != 0 && layer.kinds & !**some != 0);
        for some in apart.filter(|_| kinds == ALL) {
            self.descend(text, outer, *some, look);
        }
    }

    fn peel<'a>(&self, text: &[u8], outer: Option<&'a Layer<'a>>, kinds: Kinds) -> Layer<'a> {
        let mut layer = Layer::inside(outer, text.len());
        let mut at = 0;
        while let Some(plain) = text[at..].iter().position(begins) {
            layer.bytes.extend_from_slice(&text[at..at + plain]);
            at += plain;
            match self.take(text, at, kinds, &mut layer) {
                Some(length) => at += length,
                None => return layer,
            }
        }
        layer.bytes.extend_from_slice(&text[at..]);
        layer
    }

    /// Takes an escape, or what only looks like one; how much that was. None where the text ends in it.
    fn take(&self, text: &[u8], at: usize, kinds: Kinds, layer: &mut Layer<'_>) -> Option<usize> {
        let (start, kind) = (layer.bytes.len(), kind(&text[at..]));
        match read(&text[at..]) {
            Ok((length, letter)) if kind & kinds != 0 && self.telling[usize::from(letter.first())] => {
                letter.push(&mut layer.bytes);
                layer.escapes.push(Escape { written: at..at + length, meant: start..layer.bytes.len() });
                layer.kinds |= kind;
                Some(length)
            }
            Err(Not::Yet) if self.goes_on && kind & kinds != 0 => {
                (layer.is_cut, layer.kinds) = (true, layer.kinds | kind);
                None
            }
            not => {
                let length = not.map_or(1, |(length, _)| length);
                layer.bytes.extend_from_slice(&text[at..at + length]);
                Some(length)
            }
        }
    }
}

impl<'a> Layer<'a> {
    fn inside(outer: Option<&'a Layer<'a>>, length: usize) -> Self {
        let (depth, is_cut) = outer.map_or((1, false), |outer| (outer.depth + 1, outer.is_cut));
        Self { bytes: Vec::with_capacity(length), is_cut, outer, depth, escapes: Vec::new(), kinds: 0 }
    }

    /// Where a part of it stands in the text as it was written.
    pub fn source(&self, part: Range<usize>) -> Range<usize> {
        let part = start_in(&self.escapes, part.start)..end_in(&self.escapes, part.end);
        self.outer.map_or(part.clone(), |outer| outer.source(part))
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
pub(super) fn meant(value: &str) -> Option<Vec<u8>> {
    let peeler = Peeler { telling: &[true; 256], apart: &[], goes_on: false };
    let peeled = |text: &Vec<u8>| Some(peeler.peel(text, None, ALL)).filter(|layer| layer.kinds != 0);
    let next = |text: &Vec<u8>| peeled(text).map(|layer| layer.bytes);
    std::iter::successors(Some(value.as_bytes().to_vec()), next).take(1 + LAYERS).skip(1).last()
}

pub(super) enum Letter {
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

    pub fn first(&self) -> u8 {
        match self {
            Self::Byte(byte) => *byte,
            Self::Char(letter) => letter.encode_utf8(&mut [0; 4]).as_bytes()[0],
        }
    }
}

/// Why there is no escape.
#[derive(PartialEq, Eq)]
pub(super) enum Not {
    /// The text ends in it.
    Yet,
    Ever,
}

pub(super) fn begins(byte: &u8) -> bool {
    matches!(byte, b'%' | b'\\')
}

/// Of what a text begins with, if it is an escape.
fn kind(text: &[u8]) -> Kinds {
    match text {
        [b'%', ..] => PERCENT,
        [b'\\', b'n' | b'r' | b't' | b'b' | b'f', ..] => CONTROL,
        _ => BACKSLASH,
    }
}

/// The escape a text begins with: its length, and what it means.
pub(super) fn read(text: &[u8]) -> Result<(usize, Letter), Not> {
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

    const ANY: Peeler<'_> = Peeler { telling: &[true; 256], apart: &[], goes_on: false };

    fn layers(peeler: &Peeler<'_>, text: &str) -> Vec<String> {
        let mut seen = Vec::new();
        peeler.each_layer(text.as_bytes(), &mut |layer| {
            seen.push(String::from_utf8_lossy(&layer.bytes).into_owned());
        });
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
            assert_eq!(layers(&ANY, text), expected, "{text}");
        }
    }

    #[test]
    fn an_escape_that_is_not_whole_is_left_out() {
        for cut in ["%", "%2", r"\", r"\u", r"\u002", r"\x", r"\x2", r"\ud83d", r"\ud83d\", r"\ud83d\ude0"] {
            let start = Peeler { goes_on: true, ..ANY };
            assert_eq!(layers(&start, &format!("ab{cut}")), ["ab"], "{cut}");
            assert_eq!(layers(&start, &format!("ab%5C{cut}")).last().unwrap(), "ab", "{cut}");
        }
    }

    #[test]
    fn kinds_are_taken_off_together_and_apart() {
        let peeler = Peeler { apart: &APART, ..ANY };
        assert_eq!(layers(&peeler, r"%41b\u002d"), ["Ab-", r"Ab\u002d", "Ab-", "%41b-"]);
        assert_eq!(layers(&peeler, r"a\nb\u002d"), ["a\nb-", r"a\nb-"]);
    }

    #[test]
    fn an_escape_of_a_letter_of_no_value_is_left_as_it_is() {
        let mut telling = [false; 256];
        telling[usize::from(b'-')] = true;
        let peeler = Peeler { telling: &telling, ..ANY };
        assert_eq!(layers(&peeler, r"50%abc\u002dC:\night \ud83d\ude00"), [r"50%abc-C:\night \ud83d\ude00"]);
    }

    #[test]
    fn a_part_is_found_where_it_was_written() {
        let text = r"x%2525\\u002dy\u00fcz";
        let mut found = Vec::new();
        ANY.each_layer(text.as_bytes(), &mut |layer| {
            if layer.bytes == "x%-yüz".as_bytes() {
                found = [0..1, 1..2, 2..3, 0..4, 4..6, 6..7].map(|part| &text[layer.source(part)]).to_vec();
            }
        });
        assert_eq!(found, ["x", "%2525", r"\\u002d", r"x%2525\\u002dy", r"\u00fc", "z"]);
    }
}
