//! Pairing: an unknown sender gets a code, with which the owner of the instance admits them.

use std::fmt;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::locale::Locale;
use crate::localized;

/// How long a code can be approved.
pub const CODE_EXPIRY_MS: i64 = 60 * 60 * 1000;

/// Maximum number of pending codes per account; more unknown senders than that are no accident.
pub const MAX_PENDING_CODES: usize = 3;

/// Minimum interval at which an unknown sender who keeps writing gets the code again.
pub const CODE_REPEAT_INTERVAL_MS: i64 = 60 * 1000;

/// Characters that cannot be confused with each other.
const CODE_ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

const CODE_LENGTH: usize = 8;

/// The code that an unknown sender shows to the owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PairingCode(String);

impl PairingCode {
    /// Derives a code from an unguessable nonce.
    pub fn from_nonce(nonce: &str) -> Self {
        let hash = Sha256::digest(nonce.as_bytes());
        let message_of = |byte: &u8| char::from(CODE_ALPHABET[usize::from(byte % 32)]);
        Self(hash.iter().take(CODE_LENGTH).map(message_of).collect())
    }

    /// Parses a typed code in any case, with or without separators.
    pub fn parse(text: &str) -> Option<Self> {
        let typed = text.chars().filter(|c| !matches!(c, ' ' | '-')).map(|c| c.to_ascii_uppercase());
        let code: String = typed.collect();
        let known = |c: char| u8::try_from(c).is_ok_and(|byte| CODE_ALPHABET.contains(&byte));
        (code.len() == CODE_LENGTH && code.chars().all(known)).then_some(Self(code))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the only text that an unknown sender ever gets.
    pub fn user_message(&self, locale: Locale) -> String {
        localized!(
            locale,
            "You are not approved yet. Send this pairing code to the owner of this assistant: {self}\n\
             The code is valid for one hour. The owner approves it with: polyclaw pairing approve {self}",
            "你尚未获得批准。请把此配对码发给此助手的所有者：{self}\n\
             配对码一小时内有效。所有者用此命令批准：polyclaw pairing approve {self}",
        )
    }
}

impl fmt::Display for PairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairing_code_parses_as_typed() {
        let code = PairingCode::from_nonce("some nonce");
        assert_eq!(code.as_str().len(), CODE_LENGTH);
        assert_ne!(code, PairingCode::from_nonce("another"));
        let (first, second) = code.as_str().split_at(4);
        let typed = format!(" {}-{} ", first.to_lowercase(), second);
        assert_eq!(PairingCode::parse(&typed), Some(code));
        for bad in ["", "ABCDEFG", "ABCDEFGHJ", "ABCDEFG0", "ABCDEFGI", "ABCDEFGÄ"] {
            assert_eq!(PairingCode::parse(bad), None, "{bad}");
        }
    }
}
