//! The tokenizer of the embedding model: words without case and accents, split into the longest known pieces.
//!
//! Special tokens are never produced from text: `[UNK]` in a text is an ordinary word.

use std::collections::{HashMap, HashSet};

use unicode_normalization::UnicodeNormalization;

use super::CorruptModelFile;
use super::unicode::UnicodeClass;

/// Longer words count as unknown, because splitting takes quadratic time.
const MAX_WORD_CHARS: usize = 100;
const MAX_VOCABULARY: usize = 1 << 20;

pub(super) struct WordPiece {
    words: HashMap<String, u32>,
    marks: UnicodeClass,
    signs: UnicodeClass,
    hidden: UnicodeClass,
    unknown: u32,
    begin: u32,
    end: u32,
    /// Single letters of scripts it was shown too little of to know words.
    single_char_tokens: HashSet<u32>,
}

impl WordPiece {
    /// `vocabulary` has one word per line. Pieces that continue a word start with `##`.
    pub fn new(vocabulary: &str) -> Result<Self, CorruptModelFile> {
        let words: HashMap<String, u32> = vocabulary.lines().map(str::to_owned).zip(0..).collect();
        if words.len() > MAX_VOCABULARY {
            return Err(CorruptModelFile::new("its vocabulary is too large"));
        }
        let special = |word: &str| {
            words
                .get(word)
                .copied()
                .ok_or_else(|| CorruptModelFile::new(format!("its vocabulary has no {word}")))
        };
        let (unknown, begin, end) = (special("[UNK]")?, special("[CLS]")?, special("[SEP]")?);
        let positions =
            words.iter().filter(|(word, _)| is_non_latin_piece(word)).map(|(_, id)| *id).collect();
        Ok(Self {
            single_char_tokens: positions,
            marks: UnicodeClass::from_class(r"\p{Mn}"),
            signs: UnicodeClass::from_class(r"\p{P}"),
            hidden: UnicodeClass::from_class(r"[\p{Cc}\p{Cf}\p{Co}]"),
            unknown,
            begin,
            end,
            words,
        })
    }

    /// Returns at most `most` tokens including the markers at both ends; none for a text without words.
    pub fn encode(&self, text: &str, most: usize) -> Vec<u32> {
        let mut tokens = vec![self.begin];
        for word in self.split_words(text) {
            if tokens.len() >= most {
                break;
            }
            self.word_pieces(&word, &mut tokens);
        }
        if tokens.len() == 1 {
            return Vec::new();
        }
        tokens.truncate(most.saturating_sub(1));
        tokens.push(self.end);
        tokens
    }

    /// Whether the model cannot understand these tokens, because more than a third are unknown or letters of a script
    /// without words. All such texts get similar vectors.
    pub fn is_mostly_unknown(&self, tokens: &[u32]) -> bool {
        let words = || tokens.iter().filter(|token| **token != self.begin && **token != self.end);
        let unread = words()
            .filter(|token| **token == self.unknown || self.single_char_tokens.contains(token))
            .count();
        unread * 3 > words().count()
    }

    /// Splits a text into words and single signs, in lower case and without accents.
    fn split_words(&self, text: &str) -> Vec<String> {
        let seen = text.chars().filter(|c| matches!(c, '\t' | '\n' | '\r') || self.is_visible(*c));
        let spaced = seen.flat_map(|c| {
            let around = is_ideograph(c).then_some(' ');
            let c = if c.is_whitespace() { ' ' } else { c };
            around.into_iter().chain([c]).chain(around)
        });
        let plain = spaced.nfd().filter(|c| !self.marks.contains(*c)).flat_map(char::to_lowercase);
        let mut words = vec![String::new()];
        for c in plain {
            match words.last_mut() {
                _ if c == ' ' => words.push(String::new()),
                _ if self.is_punctuation(c) => words.extend([c.to_string(), String::new()]),
                Some(word) => word.push(c),
                None => {}
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    fn is_visible(&self, c: char) -> bool {
        c != '\0' && c != '\u{fffd}' && !self.hidden.contains(c)
    }

    fn is_punctuation(&self, c: char) -> bool {
        c.is_ascii_punctuation() || self.signs.contains(c)
    }

    /// Splits a word into the longest known prefix, then the longest known continuation, and so on. If a rest is
    /// unknown, the whole word is.
    fn word_pieces(&self, word: &str, out: &mut Vec<u32>) {
        let ends: Vec<usize> = word.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
        if ends.len() > MAX_WORD_CHARS {
            out.push(self.unknown);
            return;
        }
        let (mut start, mut found) = (0, Vec::new());
        while start < word.len() {
            let known = |end: &&usize| {
                let piece = &word[start..**end];
                match start {
                    0 => self.words.get(piece),
                    _ => self.words.get(&format!("##{piece}")),
                }
                .map(|id| (**end, *id))
            };
            let longest = ends.iter().rev().take_while(|end| **end > start).find_map(|end| known(&end));
            let Some((end, id)) = longest else {
                out.push(self.unknown);
                return;
            };
            found.push(id);
            start = end;
        }
        out.append(&mut found);
    }
}

/// Whether a piece is a single letter beyond the Latin blocks.
fn is_non_latin_piece(piece: &str) -> bool {
    let mut chars = piece.strip_prefix("##").unwrap_or(piece).chars();
    chars.next().is_some_and(|c| c.is_alphabetic() && c > '\u{24f}') && chars.next().is_none()
}

/// Chinese characters are words of their own.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2ceaf}' | '\u{2f800}'..='\u{2fa1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_into_longest_lowercase_pieces() {
        let vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\ncafe\nun\n##believ\n##able\n!\n日\n[\n]\nunk\n";
        let pieces = WordPiece::new(vocabulary).unwrap();
        for (text, tokens) in [
            ("Café!", vec![2, 4, 8, 3]),
            ("UNBELIEVABLE", vec![2, 5, 6, 7, 3]),
            ("un日\u{200b}本", vec![2, 5, 9, 1, 3]),
            ("[UNK]", vec![2, 10, 12, 11, 3]),
            (" \t\u{0} ", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(pieces.encode(text, 64), tokens, "{text:?}");
        }
        assert_eq!(pieces.encode("cafe cafe cafe cafe", 4), [2, 4, 4, 3]);
        assert_eq!(pieces.encode(&"x".repeat(100_000), 64), [2, 1, 3]);
        assert!(WordPiece::new("a\nb").is_err());
    }

    #[test]
    fn text_with_over_a_third_unknown_is_detected() {
        let vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\nferry\nleaves\n日\n.\nд\n##а\nstra\n##ß\n##e\n";
        let pieces = WordPiece::new(vocabulary).unwrap();
        for (text, expected) in [
            ("The ferry leaves.", false),
            ("The ferry 🎉", false),
            ("ferry 🎉", true),
            ("🎉🎉 🍰", true),
            ("日日日", true),
            ("да", true),
            ("Straße", false),
            ("The ferry leaves да", true),
            ("The ferry leaves. The ferry leaves да", false),
            ("我每个星期日去游泳", true),
            ("The ferry leaves. 我的猫叫小白", true),
            ("", false),
        ] {
            assert_eq!(pieces.is_mostly_unknown(&pieces.encode(text, 64)), expected, "{text:?}");
        }
    }
}
