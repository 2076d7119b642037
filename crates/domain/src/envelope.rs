//! Envelopes, the messages between instances: limits, the rules that let them pass, and retries. The broker in
//! `control` stores and delivers them.

use std::hash::Hash;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backoff::BackoffPolicy;
use crate::time::Millis;

/// Maximum size of a payload as JSON.
pub const MAX_PAYLOAD_BYTES: usize = 64 * 1024;
/// Duration of the lease under which a message is handed out.
pub const ENVELOPE_LEASE_MS: i64 = 90_000;
/// How long a sender's idempotency key is remembered.
pub const IDEMPOTENCY_KEY_TTL_MS: i64 = 24 * 3_600_000;
/// Maximum length of a type, key or correlation id.
pub const MAX_WORD_LEN: usize = 200;
pub const DEFAULT_MAX_RETRIES: u32 = 5;
pub const DEFAULT_TTL_SECS: u32 = 3_600;

const RETRY_BACKOFF: BackoffPolicy = BackoffPolicy::new(Duration::from_secs(1), Duration::from_secs(60));

/// A task for an agent of another instance. `task.status` and `task.result` report on it.
pub const HANDOFF_KIND: &str = "task.handoff";
pub const STATUS_KIND: &str = "task.status";
pub const RESULT_KIND: &str = "task.result";
/// An agent's reply to a message. It is never answered automatically.
pub const RESPONSE_KIND: &str = "response";

/// Returns whether a message reports on an earlier request, so that its recipient must not reply automatically.
pub fn is_answer_kind(kind: &str) -> bool {
    [RESPONSE_KIND, RESULT_KIND, STATUS_KIND].contains(&kind)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvelopeState {
    Queued,
    /// Handed out under a lease.
    Delivered,
    Acknowledged,
    /// Will be handed out again.
    Failed,
    /// Leaves this state only by a replay.
    DeadLetter,
}

impl EnvelopeState {
    pub const ALL: [Self; 5] =
        [Self::Queued, Self::Delivered, Self::Acknowledged, Self::Failed, Self::DeadLetter];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Delivered => "delivered",
            Self::Acknowledged => "acknowledged",
            Self::Failed => "failed",
            Self::DeadLetter => "dead_letter",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// Events of an envelope; each is recorded permanently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvelopeEventKind {
    Created,
    Queued,
    DeliveryAttempted,
    Delivered,
    Acknowledged,
    Failed,
    DeadLettered,
    Replayed,
}

impl EnvelopeEventKind {
    const ALL: [Self; 8] = [
        Self::Created,
        Self::Queued,
        Self::DeliveryAttempted,
        Self::Delivered,
        Self::Acknowledged,
        Self::Failed,
        Self::DeadLettered,
        Self::Replayed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Queued => "queued",
            Self::DeliveryAttempted => "delivery_attempted",
            Self::Delivered => "delivered",
            Self::Acknowledged => "acknowledged",
            Self::Failed => "failed",
            Self::DeadLettered => "dead_lettered",
            Self::Replayed => "replayed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Returns whether a text is a type: words joined by dots, such as `task.handoff`.
pub fn is_kind(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    text.len() <= MAX_WORD_LEN && text.split('.').all(is_word)
}

/// The types that a rule matches: one, or all below a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct EnvelopeKindPattern(String);

impl EnvelopeKindPattern {
    /// Parses `task.handoff` or `task.*`. No pattern matches everything.
    pub fn parse(text: &str) -> Option<Self> {
        is_kind(text.strip_suffix(".*").unwrap_or(text)).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns how specifically the pattern matches a type: an exact match is highest, then the longest prefix. `None`
    /// if it does not match.
    pub fn match_specificity(&self, kind: &str) -> Option<usize> {
        match self.0.strip_suffix('*') {
            Some(prefix) => kind.starts_with(prefix).then_some(prefix.len()),
            None => (kind == self.0).then_some(usize::MAX),
        }
    }
}

/// What happens to an envelope that was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvelopeRetryDecision {
    RetryAt(Millis),
    Dead(&'static str),
}

/// Decides on a retry after `attempts` of `most`. `seed` is different for each envelope, so that not all are retried at
/// the same time.
pub fn decide_retry(
    (attempts, most): (u32, u32),
    expires_at: Millis,
    now: Millis,
    seed: impl Hash,
) -> EnvelopeRetryDecision {
    if attempts >= most {
        return EnvelopeRetryDecision::Dead("all attempts that its rule allows have failed");
    }
    if expires_at <= now {
        return EnvelopeRetryDecision::Dead(EXPIRED_REASON);
    }
    EnvelopeRetryDecision::RetryAt(now.plus_duration(RETRY_BACKOFF.delay(attempts, seed)))
}

/// The dead-letter reason of an envelope that nobody fetched before it expired.
pub const EXPIRED_REASON: &str = "it expired";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelope_kinds_and_patterns_have_valid_syntax() {
        for (text, kind, pattern) in [
            ("task.handoff", true, true),
            ("response", true, true),
            ("task.*", false, true),
            ("*", false, false),
            ("*.task", false, false),
            ("task.*.x", false, false),
            ("", false, false),
            ("task.", false, false),
            ("a b", false, false),
        ] {
            assert_eq!(
                (is_kind(text), EnvelopeKindPattern::parse(text).is_some()),
                (kind, pattern),
                "{text}"
            );
        }
    }

    #[test]
    fn exact_kind_beats_longest_prefix_pattern() {
        let fit =
            |pattern: &str, kind: &str| EnvelopeKindPattern::parse(pattern).unwrap().match_specificity(kind);
        assert!(fit("task.a", "task.a") > fit("task.*", "task.a"));
        assert!(fit("task.a.*", "task.a.b") > fit("task.*", "task.a.b"));
        assert_eq!(fit("task.*", "task"), None);
        assert_eq!(fit("task.*", "tasks.a"), None);
        assert_eq!(fit("task.a", "task.b"), None);
    }

    #[test]
    fn envelope_retry_backs_off_until_exhausted_or_expired() {
        let (now, far) = (Millis(1_000_000), Millis(9_000_000));
        for (attempts, whole) in [(1, 1_000), (2, 2_000), (3, 4_000), (6, 32_000), (7, 60_000), (40, 60_000)]
        {
            for spread in 0..300 {
                let EnvelopeRetryDecision::RetryAt(at) = decide_retry((attempts, 99), far, now, spread)
                else {
                    panic!("{attempts}")
                };
                let pause = at.since(now);
                assert!((whole * 3 / 4..=whole).contains(&pause), "{attempts} {pause}");
            }
        }
        assert!(matches!(decide_retry((5, 5), far, now, 0), EnvelopeRetryDecision::Dead(_)));
        assert_eq!(decide_retry((1, 5), now, now, 0), EnvelopeRetryDecision::Dead(EXPIRED_REASON));
    }

    #[test]
    fn answer_kinds_are_recognised() {
        let kinds = ["response", "task.result", "task.status", "task.handoff", "note"];
        assert_eq!(kinds.map(is_answer_kind), [true, true, true, false, false]);
    }

    #[test]
    fn envelope_states_and_events_parse_back() {
        assert!(EnvelopeState::ALL.iter().all(|state| EnvelopeState::parse(state.as_str()) == Some(*state)));
        assert!(
            EnvelopeEventKind::ALL.iter().all(|kind| EnvelopeEventKind::parse(kind.as_str()) == Some(*kind))
        );
    }
}
