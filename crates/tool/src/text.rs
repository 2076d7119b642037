//! Text for a model: bounded, on one line where needed, and cut only between characters.

use std::ffi::OsStr;

/// Returns at most `limit` bytes of `text`, with a mark if it was cut.
pub fn truncate_text(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(limit)])
}

/// Returns a file name as one line, so that control characters in it cannot look like further entries.
pub fn name(raw: &OsStr) -> String {
    one_line(&raw.to_string_lossy())
}

pub fn one_line(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// Decodes bytes that arrive in pieces, without splitting a character.
#[derive(Default)]
pub struct TextDecoder {
    held: Vec<u8>,
}

impl TextDecoder {
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let whole = self.held.len() - unfinished_len(&self.held);
        let text = String::from_utf8_lossy(&self.held[..whole]).into_owned();
        self.held.drain(..whole);
        text
    }

    /// Returns the bytes still held back.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.held)).into_owned()
    }
}

/// Returns the number of bytes at the end that start an incomplete character.
fn unfinished_len(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        let needs = match byte {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            _ => return 0,
        };
        return if needs > back { back } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_is_truncated_at_character_boundaries() {
        assert_eq!(truncate_text("äöü", 3), "ä…");
        assert_eq!(truncate_text("abc", 3), "abc");
        assert_eq!(truncate_text("abc", 0), "…");
    }

    #[test]
    fn line_break_in_name_is_replaced() {
        assert_eq!(name(OsStr::new("a\nb")), "a\u{fffd}b");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn decoding_in_pieces_equals_decoding_at_once(text in any::<String>(), size in 1usize..5) {
            let mut decoder = TextDecoder::default();
            let mut out = String::new();
            for piece in text.as_bytes().chunks(size) {
                out.push_str(&decoder.push(piece));
            }
            out.push_str(&decoder.finish());
            prop_assert_eq!(out, text);
        }

        #[test]
        fn decoded_invalid_bytes_are_limited(bytes in any::<Vec<u8>>()) {
            let mut decoder = TextDecoder::default();
            let text = decoder.push(&bytes);
            prop_assert!(decoder.held.len() <= 3);
            prop_assert!(text.len() + decoder.finish().len() <= bytes.len() * 3);
        }
    }
}
