//! Hexadecimal encoding and short hashes.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Returns a short hash of a list of words.
pub fn digest_words(words: &[&str]) -> String {
    let mut hash = Sha256::new();
    for word in words {
        hash.update(word.len().to_be_bytes());
        hash.update(word.as_bytes());
    }
    encode_hex(&hash.finalize()[..16])
}

pub fn encode_hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Decodes pairs of hex digits in either case. `None` if the text has anything else.
pub fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatted_value_parses_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(decode_hex(&encode_hex(&bytes)), Some(bytes.clone()));
        assert_eq!(decode_hex(&encode_hex(&bytes).to_uppercase()), Some(bytes));
        assert_eq!((encode_hex(&[]), decode_hex("")), (String::new(), Some(vec![])));
    }

    #[test]
    fn invalid_hex_is_refused() {
        for text in ["a", "0g", "+1", " 1", "é", "0x10", "00 "] {
            assert_eq!(decode_hex(text), None, "{text}");
        }
    }
}
