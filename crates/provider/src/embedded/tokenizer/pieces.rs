//! Splits text into pieces before merging: single digits; then words and runs of signs, each with the space before
//! them, English contraction endings, and white space.

use super::super::unicode::UnicodeClass;

pub(super) struct PieceSplitter {
    alphabetic_class: UnicodeClass,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharKind {
    Alphabetic,
    Space,
    Sign,
}

impl PieceSplitter {
    pub fn new() -> Self {
        Self { alphabetic_class: UnicodeClass::from_class(r"\p{L}") }
    }

    fn classify(&self, c: char) -> CharKind {
        match c {
            c if self.alphabetic_class.contains(c) => CharKind::Alphabetic,
            c if c.is_whitespace() => CharKind::Space,
            _ => CharKind::Sign,
        }
    }

    pub fn split_pieces<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let mut pieces = Vec::with_capacity(text.len() / 4);
        let mut rest = text;
        // A digit is a boundary: the rules below see the text between two digits as a text of its own.
        while let Some((at, digit)) = rest.char_indices().find(|(_, c)| c.is_numeric()) {
            self.split_words(&rest[..at], &mut pieces);
            let end = at + digit.len_utf8();
            pieces.push(&rest[at..end]);
            rest = &rest[end..];
        }
        self.split_words(rest, &mut pieces);
        pieces
    }

    fn split_words<'a>(&self, mut text: &'a str, pieces: &mut Vec<&'a str>) {
        while !text.is_empty() {
            let (piece, rest) = text.split_at(self.next_len(text));
            pieces.push(piece);
            text = rest;
        }
    }

    /// Returns the length of the first piece.
    fn next_len(&self, text: &str) -> usize {
        let endings = ["'s", "'t", "'m", "'d", "'re", "'ve", "'ll"];
        if let Some(ending) = endings.into_iter().find(|ending| text.starts_with(ending)) {
            return ending.len();
        }
        let (space, word) = text.strip_prefix(' ').map_or((0, text), |word| (1, word));
        let run = |class| word.find(|c| self.classify(c) != class).unwrap_or(word.len());
        match word.chars().next().map(|first| self.classify(first)) {
            Some(class @ (CharKind::Alphabetic | CharKind::Sign)) => space + run(class),
            _ => self.whitespace_len(text),
        }
    }

    /// Returns the length of the leading white space without its last character if a word follows: that one belongs to
    /// the word or is a piece of its own.
    fn whitespace_len(&self, text: &str) -> usize {
        let end = text.find(|c: char| !c.is_whitespace()).unwrap_or(text.len());
        let last = text[..end].chars().next_back().map_or(1, char::len_utf8);
        if end < text.len() && end > last { end - last } else { end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_split_like_in_training() {
        let cutter = PieceSplitter::new();
        for (text, pieces) in [
            ("Hello world", vec!["Hello", " world"]),
            ("a  b", vec!["a", " ", " b"]),
            ("a   ", vec!["a", "   "]),
            ("a \n\n b", vec!["a", " \n\n", " b"]),
            ("it's we'll", vec!["it", "'s", " we", "'ll"]),
            ("in 2024!", vec!["in", " ", "2", "0", "2", "4", "!"]),
            ("  7", vec!["  ", "7"]),
            ("x=1;\ty", vec!["x", "=", "1", ";", "\t", "y"]),
            ("日本 語。", vec!["日本", " 語", "。"]),
            ("", vec![]),
        ] {
            assert_eq!(cutter.split_pieces(text), pieces, "{text:?}");
        }
    }
}
