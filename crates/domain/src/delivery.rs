//! The delivery gate: the only code that creates an `OutgoingMessage`, which is the only thing a channel accepts.

use serde::{Deserialize, Serialize};

use crate::channel::{ChatAddress, INTERNAL_CHANNEL};

/// The reply with which a model deliberately says nothing.
const SILENCE_TOKEN: &str = "NO_REPLY";

/// Text that passed the gate. Its fields are private, so only this module can create one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutgoingMessage {
    address: ChatAddress,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    buttons: Vec<CommandButton>,
}

/// A command that platforms with buttons show under a message. Pressing the button runs the command there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommandButton {
    pub label: &'static str,
    pub command: String,
}

impl OutgoingMessage {
    pub fn address(&self) -> &ChatAddress {
        &self.address
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn buttons(&self) -> &[CommandButton] {
        &self.buttons
    }

    /// Returns the message with these buttons.
    pub fn with_buttons(self, buttons: Vec<CommandButton>) -> Self {
        Self { buttons, ..self }
    }

    /// Splits the text into parts within the platform's limit, preferably at a line or word end. Blank parts are
    /// dropped, because platforms reject them.
    pub fn split_by_limit(self, max_chars: usize) -> Vec<Self> {
        let address = self.address;
        split_text(&self.text, max_chars.max(1))
            .into_iter()
            .filter(|text| !text.trim().is_empty())
            .map(|text| Self { address: address.clone(), text: text.to_owned(), buttons: Vec::new() })
            .collect()
    }

    /// Restores a message that passed the gate earlier from its outbox row.
    pub fn from_stored(address: ChatAddress, text: String) -> Result<Self, SuppressReason> {
        apply_gate(Some(address), DeliveryPolicy::ALLOW_ALL, text)
    }
}

/// Why text is not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuppressReason {
    /// The address is internal or missing.
    Internal,
    /// The message that caused the reply requested no delivery.
    NotRequested,
    /// The deliver or send policy of the session forbids it.
    Policy,
    /// The agent chose to say nothing.
    Silence,
}

impl SuppressReason {
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
pub struct DeliveryPolicy {
    /// The inbound message requests an answer where it came from.
    pub requested: bool,
    pub session_delivers: bool,
    pub session_sends: bool,
}

impl DeliveryPolicy {
    pub const ALLOW_ALL: Self = Self { requested: true, session_delivers: true, session_sends: true };
}

pub fn apply_gate(
    address: Option<ChatAddress>,
    policy: DeliveryPolicy,
    text: String,
) -> Result<OutgoingMessage, SuppressReason> {
    let address =
        address.filter(|address| address.channel != INTERNAL_CHANNEL).ok_or(SuppressReason::Internal)?;
    if !policy.requested {
        return Err(SuppressReason::NotRequested);
    }
    if !(policy.session_delivers && policy.session_sends) {
        return Err(SuppressReason::Policy);
    }
    if is_silence(&text) {
        return Err(SuppressReason::Silence);
    }
    Ok(OutgoingMessage { address, text, buttons: Vec::new() })
}

/// Returns whether a reply is silence: empty, or only the silence token. Such a reply is never sent.
pub fn is_silence(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text == SILENCE_TOKEN
}

/// Returns whether a growing text may still turn out to be silence.
pub fn may_be_silence(text: &str) -> bool {
    SILENCE_TOKEN.starts_with(text.trim())
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

/// State of an outbox row. A crash while `Sending` becomes `Unknown`, never a blind second send.
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

/// From one second to one minute, each delay almost three times the previous one.
const RETRY_DELAYS_MS: [i64; 5] = [1_000, 3_000, 8_000, 22_000, 60_000];

/// Delay before send attempt `attempt` (1 is the first retry). `None` if there is no further retry.
pub fn retry_delay_ms(attempt: u32) -> Option<i64> {
    RETRY_DELAYS_MS.get(usize::try_from(attempt.checked_sub(1)?).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(channel: &str) -> ChatAddress {
        ChatAddress { channel: channel.into(), account: "a".into(), peer: "p".into(), thread: None }
    }

    #[test]
    fn gate_suppresses_internal_and_unrequested_text() {
        let text = || "hello".to_owned();
        assert!(apply_gate(Some(address("telegram")), DeliveryPolicy::ALLOW_ALL, text()).is_ok());
        assert_eq!(
            apply_gate(Some(address(INTERNAL_CHANNEL)), DeliveryPolicy::ALLOW_ALL, text()),
            Err(SuppressReason::Internal)
        );
        assert_eq!(apply_gate(None, DeliveryPolicy::ALLOW_ALL, text()), Err(SuppressReason::Internal));
        let unasked = DeliveryPolicy { requested: false, ..DeliveryPolicy::ALLOW_ALL };
        assert_eq!(apply_gate(Some(address("telegram")), unasked, text()), Err(SuppressReason::NotRequested));
        let muted = DeliveryPolicy { session_sends: false, ..DeliveryPolicy::ALLOW_ALL };
        assert_eq!(apply_gate(Some(address("telegram")), muted, text()), Err(SuppressReason::Policy));
    }

    #[test]
    fn gate_suppresses_empty_and_no_reply_text() {
        for quiet in ["", "  \n", "NO_REPLY", " NO_REPLY\n"] {
            assert_eq!(
                apply_gate(Some(address("telegram")), DeliveryPolicy::ALLOW_ALL, quiet.into()),
                Err(SuppressReason::Silence)
            );
        }
        assert!(
            apply_gate(Some(address("telegram")), DeliveryPolicy::ALLOW_ALL, "NO_REPLY is a word".into())
                .is_ok()
        );
        assert!(["", " NO", "NO_REPLY"].into_iter().all(may_be_silence));
        assert!(!may_be_silence("NO_REPLY is a word") && !may_be_silence("Now"));
    }

    #[test]
    fn delivery_retry_delays_grow_to_one_minute_and_end() {
        let pauses: Vec<_> = (1..=6).map(retry_delay_ms).collect();
        assert_eq!(pauses, [Some(1_000), Some(3_000), Some(8_000), Some(22_000), Some(60_000), None]);
    }

    proptest! {
        #[test]
        fn split_parts_fit_limit_and_rejoin_to_text(text in r"(\PC{0,30}[ \n]{0,50}){0,4}", max in 1usize..40) {
            let parts = apply_gate(Some(address("x")), DeliveryPolicy::ALLOW_ALL, text.clone()).map(|o| o.split_by_limit(max)).unwrap_or_default();
            if !is_silence(&text) {
                prop_assert_eq!(split_text(&text, max).concat(), &text[..]);
                let seen = |text: &str| text.split_whitespace().collect::<String>();
                prop_assert_eq!(seen(&parts.iter().map(OutgoingMessage::text).collect::<String>()), seen(&text));
                prop_assert!(parts.iter().all(|part| part.text().chars().count() <= max && !part.text().trim().is_empty()));
            }
        }
    }
}
