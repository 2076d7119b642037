//! Ids are newtypes, so that a turn id can never be passed as a message id.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::hex::encode_hex;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(transparent)]
        #[schemars(inline)]
        pub struct $name(String);

        impl $name {
            pub fn new(value: impl Into<String>) -> Self {
                Self(value.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }
    };
}

id!(
    /// One stored message.
    MessageId
);
id!(
    /// One turn job, from queued to its terminal state.
    TurnId
);
id!(
    /// One process that claims turn jobs. New at every start, so that an old lease is never taken for our own.
    NodeId
);
id!(
    /// Follows one inbound message through all turns, children and deliveries that it causes.
    TraceId
);
id!(
    /// One incarnation of a session; `/new` starts another under the same key.
    SessionId
);
id!(
    /// One row of the outbox.
    OutboxId
);
id!(
    /// One memory.
    MemoryId
);
id!(
    /// One approval request.
    ApprovalId
);
id!(
    /// One run of a spawned session.
    RunId
);
impl RunId {
    /// Returns the same id for the same cause, so that a repeated request starts one run.
    pub fn from_cause(cause: &str) -> Self {
        let digest = Sha256::digest(cause.as_bytes());
        Self(format!("run-{}", encode_hex(&digest[..12])))
    }
}

id!(
    /// One team, permanently. Its name may be reused after it has ended.
    TeamId
);
id!(
    /// One message between instances.
    EnvelopeId
);
id!(
    /// One message between team members.
    TeamMessageId
);
id!(
    /// One instance of a control plane. It survives renaming.
    InstanceId
);

impl NodeId {
    /// Returns the node's name, which survives restarts: the id without the process epoch.
    pub fn node_name(&self) -> &str {
        self.as_str().rsplit_once('/').map_or(self.as_str(), |(node_name, _)| node_name)
    }
}

/// The id of an agent: `^[a-z][a-z0-9_-]{0,63}$`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct AgentId(String);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "'{0}' is not an agent id: expected a lower-case letter, followed by up to 63 of a-z, 0-9, '_' and '-'"
)]
pub struct InvalidAgentId(pub String);

impl AgentId {
    pub fn parse(text: &str) -> Result<Self, InvalidAgentId> {
        let mut chars = text.chars();
        let first = chars.next().is_some_and(|c| c.is_ascii_lowercase());
        let rest = chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-');
        if first && rest && text.len() <= 64 {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidAgentId(text.to_owned()))
        }
    }

    /// The agent of a home that defines none.
    pub fn main() -> Self {
        Self("main".to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for AgentId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for AgentId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AgentId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[a-z][a-z0-9_-]{0,63}$" })
    }
}

/// Returns the UUID for a call: a repeated call creates the same thing. It contains no text of the caller or a model
/// provider.
pub fn uuid_for_call(call: &str) -> String {
    use sha2::Digest as _;
    let hash = sha2::Sha256::digest(call.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    // Version 8 (custom), variant of RFC 9562.
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Maximum length of a call id that becomes part of another id.
const MAX_PLAIN_CALL_ID: usize = 24;

/// Returns the id of what a tool call creates. Call ids are text of a model provider: one that is long, or has other
/// characters than letters, digits, `-` and `_`, is replaced by a UUID.
pub fn id_for_call(turn: &TurnId, call_id: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if call_id.len() <= MAX_PLAIN_CALL_ID && call_id.bytes().all(is_plain) {
        return format!("{turn}-{call_id}");
    }
    uuid_for_call(&format!("{turn}-{call_id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_run_id_is_short_and_deterministic() {
        let cause = "telegram:default:8-agent:main:telegram:dm:7";
        let id = RunId::from_cause(cause);
        assert_eq!((id.clone(), id.as_str().len()), (RunId::from_cause(cause), 28));
        assert_ne!(id, RunId::from_cause("telegram:default:9-agent:main:telegram:dm:7"));
    }

    #[test]
    fn agent_ids_are_short_lower_case_words() {
        for good in ["a", "main", "ops-2", "code_review", &"x".repeat(64)] {
            assert!(AgentId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "Main", "2ops", "-x", "a b", "a:b", "ä", &"x".repeat(65)] {
            assert!(AgentId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn call_ids_contain_no_hostile_text() {
        let turn = TurnId::new("t");
        assert_eq!(id_for_call(&turn, "call-0"), "t-call-0");
        for hostile in ["a\u{202e}b", "<b>", "a b", "../x", &"x".repeat(25)] {
            let id = id_for_call(&turn, hostile);
            assert!(id.len() == 36 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-'), "{id}");
            assert_eq!(id, id_for_call(&turn, hostile));
            assert_ne!(id, id_for_call(&TurnId::new("u"), hostile));
        }
    }

    #[test]
    fn uuid_for_call_is_deterministic_and_well_formed() {
        let one = uuid_for_call("turn-\u{202e}<b>");
        assert_eq!((one.len(), one.matches('-').count()), (36, 4));
        assert!(
            one.chars().all(|c| c.is_ascii_hexdigit() || c == '-') && one.as_bytes()[14] == b'8',
            "{one}"
        );
        assert_eq!(one, uuid_for_call("turn-\u{202e}<b>"));
        assert_ne!(one, uuid_for_call("turn-b"));
    }
}
