//! The deliver gate: the only maker of `Outgoing`, which is the only thing a channel accepts.

use serde::{Deserialize, Serialize};

use crate::channel::{Address, INTERNAL};

/// The word with which a model says nothing on purpose.
const SILENCE: &str = "NO_REPLY";

/// Text that passed the gate. Its fields are private to this module: nobody else can make one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outgoing {
    address: Address,
    text: String,
}

impl Outgoing {
    pub fn address(&self) -> &Address {
        &self.address
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Cuts the text into parts no longer than the platform takes, at a line or word end where there is one. A part with
    /// nothing to see in it is left out: platforms refuse such a message.
    pub fn split(self, max_chars: usize) -> Vec<Self> {
        let address = self.address;
        split_text(&self.text, max_chars.max(1))
            .into_iter()
            .filter(|text| !text.trim().is_empty())
            .map(|text| Self { address: address.clone(), text: text.to_owned() })
            .collect()
    }

    /// Rebuilds what an earlier pass of the gate allowed, from its outbox row.
    pub fn stored(address: Address, text: String) -> Result<Self, Kept> {
        gate(Some(address), Policy::OPEN, text)
    }
}

/// Why text stays inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// The address is internal, or there is none.
    Internal,
    /// The message that asked for this did not want delivery.
    NotRequested,
    /// The session's deliver or send policy says no.
    Policy,
    /// The agent chose to say nothing.
    Silence,
}

impl Kept {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Internal => "internal",
            Self::NotRequested => "not_requested",
            Self::Policy => "policy",
            Self::Silence => "silence",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The inbound message wants an answer where it came from.
    pub wanted: bool,
    pub session_delivers: bool,
    pub session_sends: bool,
}

impl Policy {
    pub const OPEN: Self = Self { wanted: true, session_delivers: true, session_sends: true };
}

pub fn gate(address: Option<Address>, policy: Policy, text: String) -> Result<Outgoing, Kept> {
    let address = address.filter(|address| address.channel != INTERNAL).ok_or(Kept::Internal)?;
    if !policy.wanted {
        return Err(Kept::NotRequested);
    }
    if !(policy.session_delivers && policy.session_sends) {
        return Err(Kept::Policy);
    }
    if is_silence(&text) {
        return Err(Kept::Silence);
    }
    Ok(Outgoing { address, text })
}

/// Silence is an outcome, never text: a reply of nothing but the word, or of nothing at all, is not sent.
pub fn is_silence(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text == SILENCE
}

/// Whether a text that still grows may turn out to be silence.
pub fn may_be_silence(text: &str) -> bool {
    SILENCE.starts_with(text.trim())
}

fn split_text(text: &str, max_chars: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((hard_end, _)) = rest.char_indices().nth(max_chars) {
        let window = &rest[..hard_end];
        let end = ["\n\n", "\n", " "]
            .into_iter()
            .find_map(|mark| window.rfind(mark).map(|at| at + mark.len()).filter(|end| *end * 2 > hard_end))
            .unwrap_or(hard_end);
        parts.push(&rest[..end]);
        rest = &rest[end..];
    }
    parts.push(rest);
    parts
}

/// One row of the outbox. A crash while `Sending` becomes `Unknown`, never a blind second send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutboxState {
    Pending,
    Sending,
    Sent,
    Unknown,
    Failed,
}

impl OutboxState {
    pub const ALL: [Self; 5] = [Self::Pending, Self::Sending, Self::Sent, Self::Unknown, Self::Failed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Unknown => "unknown",
            Self::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// Pause before send attempt `attempt` (1 is the first retry): 1 s doubling to 60 s, five retries, then `None`.
pub fn retry_pause_ms(attempt: u32) -> Option<i64> {
    (attempt <= 5).then(|| (1000_i64 << (attempt - 1).min(6)).min(60_000))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(channel: &str) -> Address {
        Address { channel: channel.into(), account: "a".into(), peer: "p".into(), thread: None }
    }

    #[test]
    fn nothing_internal_or_unasked_for_leaves() {
        let text = || "hello".to_owned();
        assert!(gate(Some(address("telegram")), Policy::OPEN, text()).is_ok());
        assert_eq!(gate(Some(address(INTERNAL)), Policy::OPEN, text()), Err(Kept::Internal));
        assert_eq!(gate(None, Policy::OPEN, text()), Err(Kept::Internal));
        let unasked = Policy { wanted: false, ..Policy::OPEN };
        assert_eq!(gate(Some(address("telegram")), unasked, text()), Err(Kept::NotRequested));
        let muted = Policy { session_sends: false, ..Policy::OPEN };
        assert_eq!(gate(Some(address("telegram")), muted, text()), Err(Kept::Policy));
    }

    #[test]
    fn silence_is_an_outcome_not_text() {
        for quiet in ["", "  \n", "NO_REPLY", " NO_REPLY\n"] {
            assert_eq!(gate(Some(address("telegram")), Policy::OPEN, quiet.into()), Err(Kept::Silence));
        }
        assert!(gate(Some(address("telegram")), Policy::OPEN, "NO_REPLY is a word".into()).is_ok());
        assert!(["", " NO", "NO_REPLY"].into_iter().all(may_be_silence));
        assert!(!may_be_silence("NO_REPLY is a word") && !may_be_silence("Now"));
    }

    #[test]
    fn retries_double_to_a_minute_and_end() {
        let pauses: Vec<_> = (1..=6).map(retry_pause_ms).collect();
        assert_eq!(pauses, [Some(1000), Some(2000), Some(4000), Some(8000), Some(16000), None]);
    }

    proptest! {
        #[test]
        fn parts_join_to_the_text_and_fit(text in r"(\PC{0,30}[ \n]{0,50}){0,4}", max in 1usize..40) {
            let parts = gate(Some(address("x")), Policy::OPEN, text.clone()).map(|o| o.split(max)).unwrap_or_default();
            if !is_silence(&text) {
                prop_assert_eq!(split_text(&text, max).concat(), &text[..]);
                let seen = |text: &str| text.split_whitespace().collect::<String>();
                prop_assert_eq!(seen(&parts.iter().map(Outgoing::text).collect::<String>()), seen(&text));
                prop_assert!(parts.iter().all(|part| part.text().chars().count() <= max && !part.text().trim().is_empty()));
            }
        }
    }
}
