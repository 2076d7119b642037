//! Incremental text: bytes split inside a character, and the reply inside a line of JSON.

/// Assembles characters from bytes. Invalid bytes become �.
#[derive(Default)]
pub(super) struct Utf8Decoder {
    open: Vec<u8>,
}

impl Utf8Decoder {
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.open.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.open) {
            Ok(_) => self.open.len(),
            Err(error) if error.error_len().is_some() => self.open.len() - self.unfinished_len(),
            Err(error) => error.valid_up_to(),
        };
        let rest = self.open.split_off(whole);
        String::from_utf8_lossy(&std::mem::replace(&mut self.open, rest)).into_owned()
    }

    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.open)).into_owned()
    }

    /// Returns how many bytes at the end may still become a character.
    fn unfinished_len(&self) -> usize {
        let could_go_on = |count: &usize| {
            let tail = &self.open[self.open.len() - count..];
            std::str::from_utf8(tail)
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        };
        (1..=3.min(self.open.len())).rev().find(could_go_on).unwrap_or(0)
    }
}

/// Extracts the text of a reply from a JSON line while it streams.
pub(super) struct ReplyText {
    before: &'static str,
    seen: String,
    state: ReplyTextState,
}

#[derive(PartialEq, Eq)]
enum ReplyTextState {
    Before,
    Inside,
    Escaped,
    After,
}

impl ReplyText {
    /// `before` is the JSON in front of the text, with its opening quote.
    pub fn starting_after(before: &'static str) -> Self {
        Self { before, seen: String::new(), state: ReplyTextState::Before }
    }

    pub fn push(&mut self, piece: &str) -> String {
        let mut text = String::new();
        for c in piece.chars() {
            self.state = match (&self.state, c) {
                (ReplyTextState::Before, _) => {
                    self.seen.push(c);
                    match (self.seen == self.before, self.before.starts_with(&self.seen)) {
                        (true, _) => ReplyTextState::Inside,
                        (false, true) => ReplyTextState::Before,
                        // A tool call, which contains no reply.
                        (false, false) => ReplyTextState::After,
                    }
                }
                (ReplyTextState::Inside, '\\') => ReplyTextState::Escaped,
                (ReplyTextState::Inside, '"') | (ReplyTextState::After, _) => ReplyTextState::After,
                (ReplyTextState::Inside, _) => {
                    text.push(c);
                    ReplyTextState::Inside
                }
                (ReplyTextState::Escaped, _) => {
                    text.push(match c {
                        'n' => '\n',
                        't' => '\t',
                        other => other,
                    });
                    ReplyTextState::Inside
                }
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_utf8_is_joined_and_invalid_bytes_marked() {
        let mut utf8 = Utf8Decoder::default();
        let texts: Vec<String> =
            [&b"a\xf0\x9f"[..], b"\xa6", b"\x80\xff", b"b\xc3"].map(|piece| utf8.push(piece)).to_vec();
        assert_eq!(texts, ["a", "", "🦀\u{fffd}", "b"]);
        assert_eq!(utf8.finish(), "\u{fffd}");
    }

    #[test]
    fn reply_text_is_extracted_from_json_pieces() {
        let mut reply = ReplyText::starting_after("{\"text\": \"");
        let text: String =
            ["{\"te", "xt\": \"a", "\\", "\"b\\n", "c\"}"].map(|piece| reply.push(piece)).concat();
        assert_eq!(text, "a\"b\nc");
        assert_eq!(ReplyText::starting_after("{\"text\"").push("{\"tool\": \"text\"}"), "");
    }
}
