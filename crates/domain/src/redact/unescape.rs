//! Decodes escapes in a text, layer by layer, and maps decoded ranges back to the original text.

use std::ops::Range;

/// JSON in a URL in JSON is three layers; one more is allowed.
pub(super) const MAX_ESCAPE_LAYERS: usize = 4;
/// Maximum encoded length of one byte: two layers that both use `\u`.
pub(super) const MAX_ESCAPED_BYTE_LEN: usize = 6 * 6;

/// A set of escape kinds.
pub(super) type EscapeKinds = u8;

const PERCENT_ESCAPES: EscapeKinds = 1;
/// `\n` and other control characters.
const CONTROL_ESCAPES: EscapeKinds = 2;
/// All other backslash escapes.
const BACKSLASH_ESCAPES: EscapeKinds = 4;
/// `&#45;` and the like, as in web pages.
const ENTITY_ESCAPES: EscapeKinds = 8;
const ALL_ESCAPES: EscapeKinds = PERCENT_ESCAPES | CONTROL_ESCAPES | BACKSLASH_ESCAPES | ENTITY_ESCAPES;
/// Named entities of characters that HTML must escape.
const NAMED_ENTITIES: [(&[u8], u8); 5] =
    [(b"amp;", b'&'), (b"lt;", b'<'), (b"gt;", b'>'), (b"quot;", b'"'), (b"apos;", b'\'')];
/// Maximum number of digits of a numeric entity.
const MAX_ENTITY_DIGITS: usize = 7;
/// A character directly before a value can turn its first characters into an accidental escape. If a layer contains
/// several kinds of escapes, subsets of them are therefore decoded, too.
pub(super) const SEPARATE_KINDS: [EscapeKinds; 4] = [
    PERCENT_ESCAPES,
    BACKSLASH_ESCAPES | CONTROL_ESCAPES,
    PERCENT_ESCAPES | BACKSLASH_ESCAPES,
    ENTITY_ESCAPES,
];

/// Decodes escapes.
pub(super) struct EscapeDecoder<'a> {
    /// Subsets of kinds that are also decoded alone.
    pub apart: &'a [EscapeKinds],
    /// Characters whose escapes are decoded, by first byte. Other escapes are kept: they are part of no value and may
    /// not be escapes.
    pub telling: &'a [bool; 256],
    /// More text follows, so an incomplete escape at the end may become one.
    pub goes_on: bool,
}

/// A text with one layer of escapes decoded, and the map to its source.
pub(super) struct DecodedLayer<'a> {
    pub bytes: Vec<u8>,
    /// Whether an incomplete escape was dropped at the end, here or in an outer layer.
    pub is_cut: bool,
    outer: Option<&'a DecodedLayer<'a>>,
    depth: usize,
    escapes: Vec<EscapeSpan>,
    /// Kinds of the decoded escapes, and of the incomplete one.
    kinds: EscapeKinds,
}

/// The source range of an escape and its decoded range.
struct EscapeSpan {
    written: Range<usize>,
    meant: Range<usize>,
}

impl EscapeDecoder<'_> {
    /// Calls `look` with every decoded layer of a text.
    pub fn each_layer(&self, text: &[u8], look: &mut dyn FnMut(&DecodedLayer<'_>)) {
        self.decode_nested(text, None, ALL_ESCAPES, look);
    }

    fn decode_nested(
        &self,
        text: &[u8],
        outer: Option<&DecodedLayer<'_>>,
        kinds: EscapeKinds,
        look: &mut dyn FnMut(&DecodedLayer<'_>),
    ) {
        if outer.is_some_and(|outer| outer.depth == MAX_ESCAPE_LAYERS) || !text.iter().any(begins_escape) {
            return;
        }
        let layer = self.decode_layer(text, outer, kinds);
        if layer.kinds == 0 {
            return;
        }
        look(&layer);
        // Percent-encoding is always the outermost layer.
        let next = if kinds == PERCENT_ESCAPES { BACKSLASH_ESCAPES | CONTROL_ESCAPES } else { kinds };
        self.decode_nested(&layer.bytes, Some(&layer), next, look);
        let apart = self.apart.iter().filter(|some| layer.kinds & **some != 0 && layer.kinds & !**some != 0);
        for some in apart.filter(|_| kinds == ALL_ESCAPES) {
            self.decode_nested(text, outer, *some, look);
        }
    }

    fn decode_layer<'a>(
        &self,
        text: &[u8],
        outer: Option<&'a DecodedLayer<'a>>,
        kinds: EscapeKinds,
    ) -> DecodedLayer<'a> {
        let mut layer = DecodedLayer::nested_in(outer, text.len());
        let mut at = 0;
        while let Some(plain) = text[at..].iter().position(begins_escape) {
            layer.bytes.extend_from_slice(&text[at..at + plain]);
            at += plain;
            match self.take_escape(text, at, kinds, &mut layer) {
                Some(length) => at += length,
                None => return layer,
            }
        }
        layer.bytes.extend_from_slice(&text[at..]);
        layer
    }

    /// Consumes an escape, or a text that only looks like one, and returns its length. `None` if the text ends within
    /// it.
    fn take_escape(
        &self,
        text: &[u8],
        at: usize,
        kinds: EscapeKinds,
        layer: &mut DecodedLayer<'_>,
    ) -> Option<usize> {
        let (start, kind) = (layer.bytes.len(), escape_kind(&text[at..]));
        match parse_escape(&text[at..]) {
            Ok((length, character))
                if kind & kinds != 0 && self.telling[usize::from(character.first_byte())] =>
            {
                character.push(&mut layer.bytes);
                layer.escapes.push(EscapeSpan { written: at..at + length, meant: start..layer.bytes.len() });
                layer.kinds |= kind;
                Some(length)
            }
            Err(NoEscape::Yet) if self.goes_on && kind & kinds != 0 => {
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

impl<'a> DecodedLayer<'a> {
    fn nested_in(outer: Option<&'a DecodedLayer<'a>>, length: usize) -> Self {
        let (depth, is_cut) = outer.map_or((1, false), |outer| (outer.depth + 1, outer.is_cut));
        Self { bytes: Vec::with_capacity(length), is_cut, outer, depth, escapes: Vec::new(), kinds: 0 }
    }

    /// Returns the range in the original text that a decoded range came from.
    pub fn source_range(&self, part: Range<usize>) -> Range<usize> {
        let part = source_start(&self.escapes, part.start)..source_end(&self.escapes, part.end);
        self.outer.map_or(part.clone(), |outer| outer.source_range(part))
    }
}

fn source_start(layer: &[EscapeSpan], at: usize) -> usize {
    match layer[..layer.partition_point(|escape| escape.meant.start <= at)].last() {
        Some(escape) if at < escape.meant.end => escape.written.start,
        Some(escape) => escape.written.end + at - escape.meant.end,
        None => at,
    }
}

fn source_end(layer: &[EscapeSpan], at: usize) -> usize {
    match layer[..layer.partition_point(|escape| escape.meant.start < at)].last() {
        Some(escape) if at <= escape.meant.end => escape.written.end,
        Some(escape) => escape.written.end + at - escape.meant.end,
        None => at,
    }
}

/// Decodes all escape layers of a value. `None` if it has no escapes.
pub(super) fn decode_fully(value: &str) -> Option<Vec<u8>> {
    let peeler = EscapeDecoder { telling: &[true; 256], apart: &[], goes_on: false };
    let peeled =
        |text: &Vec<u8>| Some(peeler.decode_layer(text, None, ALL_ESCAPES)).filter(|layer| layer.kinds != 0);
    let next = |text: &Vec<u8>| peeled(text).map(|layer| layer.bytes);
    std::iter::successors(Some(value.as_bytes().to_vec()), next).take(1 + MAX_ESCAPE_LAYERS).skip(1).last()
}

pub(super) enum DecodedChar {
    Byte(u8),
    Char(char),
}

impl DecodedChar {
    fn push(self, out: &mut Vec<u8>) {
        match self {
            Self::Byte(byte) => out.push(byte),
            Self::Char(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }

    pub fn first_byte(&self) -> u8 {
        match self {
            Self::Byte(byte) => *byte,
            Self::Char(character) => character.encode_utf8(&mut [0; 4]).as_bytes()[0],
        }
    }
}

/// Why a text is not an escape.
#[derive(PartialEq, Eq)]
pub(super) enum NoEscape {
    /// The text ends within it.
    Yet,
    Ever,
}

pub(super) fn begins_escape(byte: &u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&')
}

/// Returns the kind of the escape at the start of a text.
fn escape_kind(text: &[u8]) -> EscapeKinds {
    match text {
        [b'%', ..] => PERCENT_ESCAPES,
        [b'&', ..] => ENTITY_ESCAPES,
        [b'\\', b'n' | b'r' | b't' | b'b' | b'f', ..] => CONTROL_ESCAPES,
        _ => BACKSLASH_ESCAPES,
    }
}

/// Parses the escape at the start of a text: its length and the decoded character.
pub(super) fn parse_escape(text: &[u8]) -> Result<(usize, DecodedChar), NoEscape> {
    match text {
        [b'%', digits @ ..] => Ok((3, DecodedChar::Byte(parse_hex(digits, 2)?.to_be_bytes()[1]))),
        [b'\\', b'x', digits @ ..] => Ok((4, DecodedChar::Byte(parse_hex(digits, 2)?.to_be_bytes()[1]))),
        [b'\\', b'u', digits @ ..] => parse_unicode(digits),
        [b'\\', sign, ..] => Ok((2, DecodedChar::Byte(simple_escape(*sign).ok_or(NoEscape::Ever)?))),
        [b'\\'] => Err(NoEscape::Yet),
        [b'&', rest @ ..] => parse_entity(rest),
        _ => Err(NoEscape::Ever),
    }
}

/// What follows `&`: a name, or a number in decimal or hexadecimal digits.
fn parse_entity(text: &[u8]) -> Result<(usize, DecodedChar), NoEscape> {
    let Some(number) = text.strip_prefix(b"#") else {
        let named = NAMED_ENTITIES.iter().find(|(name, _)| text.starts_with(name));
        let may_become = NAMED_ENTITIES.iter().any(|(name, _)| name.starts_with(text));
        let missing = if may_become { NoEscape::Yet } else { NoEscape::Ever };
        return named.map(|(name, byte)| (1 + name.len(), DecodedChar::Byte(*byte))).ok_or(missing);
    };
    let (digits, radix, start) = match number {
        [b'x' | b'X', digits @ ..] => (digits, 16, 3),
        digits => (digits, 10, 2),
    };
    let count = digits.iter().take_while(|byte| char::from(**byte).is_digit(radix)).count();
    match digits.get(count) {
        None if count <= MAX_ENTITY_DIGITS => Err(NoEscape::Yet),
        Some(b';') if (1..=MAX_ENTITY_DIGITS).contains(&count) => {
            let code = std::str::from_utf8(&digits[..count]).ok();
            let code = code.and_then(|digits| u32::from_str_radix(digits, radix).ok());
            let character = code.and_then(char::from_u32).ok_or(NoEscape::Ever)?;
            Ok((start + count + 1, DecodedChar::Char(character)))
        }
        _ => Err(NoEscape::Ever),
    }
}

fn simple_escape(sign: u8) -> Option<u8> {
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

/// Parses what follows `\u`: a character, or a surrogate whose other half follows in another escape.
fn parse_unicode(digits: &[u8]) -> Result<(usize, DecodedChar), NoEscape> {
    let first = parse_hex(digits, 4)?;
    if let Some(character) = char::from_u32(first.into()) {
        return Ok((6, DecodedChar::Char(character)));
    }
    match &digits[4..] {
        [b'\\', b'u', digits @ ..] => {
            let pair = char::decode_utf16([first, parse_hex(digits, 4)?]).next();
            Ok((12, DecodedChar::Char(pair.and_then(Result::ok).ok_or(NoEscape::Ever)?)))
        }
        [] | [b'\\'] => Err(NoEscape::Yet),
        _ => Err(NoEscape::Ever),
    }
}

fn parse_hex(text: &[u8], digits: usize) -> Result<u16, NoEscape> {
    let given = &text[..digits.min(text.len())];
    let add = |sum: u16, digit: &u8| Some(sum << 4 | u16::try_from(char::from(*digit).to_digit(16)?).ok()?);
    match given.iter().try_fold(0, add) {
        Some(number) if given.len() == digits => Ok(number),
        Some(_) => Err(NoEscape::Yet),
        None => Err(NoEscape::Ever),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: EscapeDecoder<'_> = EscapeDecoder { telling: &[true; 256], apart: &[], goes_on: false };

    fn layers(peeler: &EscapeDecoder<'_>, text: &str) -> Vec<String> {
        let mut seen = Vec::new();
        peeler.each_layer(text.as_bytes(), &mut |layer| {
            seen.push(String::from_utf8_lossy(&layer.bytes).into_owned());
        });
        seen
    }

    #[test]
    fn nested_escapes_are_decoded_layer_by_layer() {
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
    fn incomplete_escape_is_omitted() {
        for cut in ["%", "%2", r"\", r"\u", r"\u002", r"\x", r"\x2", r"\ud83d", r"\ud83d\", r"\ud83d\ude0"] {
            let start = EscapeDecoder { goes_on: true, ..ANY };
            assert_eq!(layers(&start, &format!("ab{cut}")), ["ab"], "{cut}");
            assert_eq!(layers(&start, &format!("ab%5C{cut}")).last().unwrap(), "ab", "{cut}");
        }
    }

    #[test]
    fn escape_kinds_are_decoded_together_and_separately() {
        let peeler = EscapeDecoder { apart: &SEPARATE_KINDS, ..ANY };
        assert_eq!(layers(&peeler, r"%41b\u002d"), ["Ab-", r"Ab\u002d", "Ab-", "%41b-"]);
        assert_eq!(layers(&peeler, r"a\nb\u002d"), ["a\nb-", r"a\nb-"]);
    }

    #[test]
    fn irrelevant_escape_is_left_unchanged() {
        let mut telling = [false; 256];
        telling[usize::from(b'-')] = true;
        let peeler = EscapeDecoder { telling: &telling, ..ANY };
        assert_eq!(layers(&peeler, r"50%abc\u002dC:\night \ud83d\ude00"), [r"50%abc-C:\night \ud83d\ude00"]);
    }

    #[test]
    fn decoded_range_maps_to_source_range() {
        let text = r"x%2525\\u002dy\u00fcz";
        let mut found = Vec::new();
        ANY.each_layer(text.as_bytes(), &mut |layer| {
            if layer.bytes == "x%-yüz".as_bytes() {
                found =
                    [0..1, 1..2, 2..3, 0..4, 4..6, 6..7].map(|part| &text[layer.source_range(part)]).to_vec();
            }
        });
        assert_eq!(found, ["x", "%2525", r"\\u002d", r"x%2525\\u002dy", r"\u00fc", "z"]);
    }
}
