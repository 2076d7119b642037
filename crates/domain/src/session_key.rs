//! Session keys. Two different conversations can never share a key, because separators inside a part are escaped before
//! the parts are joined.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::AgentId;
use crate::redact::quote_safely;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct SessionKey(String);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "'{0}' is not a session key: expected agent:<id>:…, cron:<job> or hook:<id>, in lower case, at most 512 \
     characters"
)]
pub struct InvalidSessionKey(pub String);

/// Channels of the instance's owner.
const OWNER_CHANNELS: [&str; 2] = ["cli", "web"];

impl SessionKey {
    /// Returns `agent:<id>:main`, the conversation of an agent with its owner.
    pub fn main(agent: &AgentId) -> Self {
        Self::from_parts(agent, &["main"])
    }

    /// `agent:<id>:<channel>:dm:<peer>`.
    pub fn for_direct(agent: &AgentId, channel: &str, peer: &str) -> Self {
        Self::from_parts(agent, &[channel, "dm", peer])
    }

    /// `agent:<id>:<part>:<part>…`, each part escaped.
    pub fn from_parts(agent: &AgentId, parts: &[&str]) -> Self {
        let mut key = format!("agent:{agent}");
        for part in parts {
            key.push(':');
            key.push_str(&escape_part(part));
        }
        Self(key)
    }

    pub fn for_cron_job(job: &str) -> Self {
        Self(format!("cron:{}", escape_part(job)))
    }

    pub fn for_hook(id: &str) -> Self {
        Self(format!("hook:{}", escape_part(id)))
    }

    /// Parses only what this module writes, so that one conversation has one spelling. Platform ids may be written with
    /// capitals, which are escaped in a key.
    pub fn parse(text: &str) -> Result<Self, InvalidSessionKey> {
        let refused = || InvalidSessionKey(quote_safely(text));
        let text = &*escape_capitals(text);
        let parts: Vec<&str> = text.split(':').collect();
        let named = match parts.as_slice() {
            ["agent", id, _, ..] => AgentId::parse(id).is_ok(),
            ["cron" | "hook", _] => true,
            _ => false,
        };
        let well_formed =
            parts.iter().all(|part| unescape_part(part).is_some_and(|raw| escape_part(&raw) == *part));
        if named && well_formed && text.len() <= 512 { Ok(Self(text.to_owned())) } else { Err(refused()) }
    }

    /// Returns the agent in the key; cron and hook sessions have none.
    pub fn agent_id(&self) -> Option<AgentId> {
        let mut parts = self.0.split(':');
        (parts.next() == Some("agent")).then(|| parts.next())?.and_then(|id| AgentId::parse(id).ok())
    }

    /// Returns the key of the same conversation with another agent. `None` if the key has no agent.
    pub fn with_agent(&self, agent: &AgentId) -> Option<Self> {
        let (_, rest) = self.0.strip_prefix("agent:")?.split_once(':')?;
        Some(Self(format!("agent:{agent}:{rest}")))
    }

    pub fn parts(&self) -> Vec<String> {
        self.0.split(':').filter_map(unescape_part).collect()
    }

    /// Returns whether only the holder of the instance's token writes here, on their own behalf. A program that uses
    /// the API may write for many people.
    pub fn is_owner_session(&self) -> bool {
        match self.parts().as_slice() {
            [agent, _, main] => agent == "agent" && main == "main",
            [agent, _, channel, ..] => agent == "agent" && OWNER_CHANNELS.contains(&channel.as_str()),
            _ => false,
        }
    }

    /// Returns whether this is a direct conversation or an agent's main session.
    pub fn is_private(&self) -> bool {
        let parts: Vec<&str> = self.0.split(':').collect();
        matches!(parts.as_slice(), ["agent", _, _] | ["agent", .., "dm", _])
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SessionKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

fn escape_capitals(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Cow::Borrowed(text);
    }
    let escaped =
        |c: char| if c.is_ascii_uppercase() { format!("%{:02x}", u32::from(c)) } else { c.to_string() };
    Cow::Owned(text.chars().map(escaped).collect())
}

/// Escapes separators, upper case (keys are lower case), white space and control characters. The empty part is `%`.
fn escape_part(part: &str) -> String {
    if part.is_empty() {
        return "%".to_owned();
    }
    let mut out = String::with_capacity(part.len());
    for c in part.chars() {
        if matches!(c, ':' | '%' | '/' | '?' | '#') || c.is_control() || c.is_whitespace() || c.is_uppercase()
        {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                out.push_str(&format!("%{byte:02x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn unescape_part(part: &str) -> Option<String> {
    if part == "%" {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'%' {
            let hex = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(byte);
            rest = tail;
        }
    }
    let raw = String::from_utf8(bytes).ok()?;
    (!raw.is_empty()).then_some(raw)
}

impl schemars::JsonSchema for SessionKey {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SessionKey".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn peer(a: &str, b: &str) -> SessionKey {
        SessionKey::from_parts(&AgentId::main(), &[a, "dm", b])
    }

    #[test]
    fn dm_and_main_session_keys_are_private() {
        for (key, expected) in [
            ("agent:a:main", true),
            ("agent:a:dm:p", true),
            ("agent:a:chat:dm:p", true),
            ("agent:a:chat:acc:dm:p", true),
            ("agent:a:chat:group:dm", false),
            ("agent:a:chat:group:g", false),
            ("agent:a:chat:channel:c:thread:dm", false),
            ("cron:a", false),
        ] {
            assert_eq!(SessionKey::parse(key).unwrap().is_private(), expected, "{key}");
        }
    }

    #[test]
    fn parts_that_contain_separators_do_not_collide() {
        assert_ne!(peer("a:b", "c"), peer("a", "b:c"));
        assert_ne!(peer("a.b", "c"), peer("a_b", "c"));
        assert_ne!(peer("A", "c"), peer("a", "c"));
        assert_ne!(peer("", "c"), peer("%", "c"));
    }

    #[test]
    fn known_session_key_shapes_parse() {
        for good in [
            "agent:main:main",
            "agent:ops:telegram:dm:123",
            "agent:ops:slack:channel:c1:thread:1.2",
            "cron:daily",
            "hook:x",
        ] {
            assert_eq!(SessionKey::parse(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn uppercase_ids_in_session_keys_are_normalised() {
        let written = SessionKey::parse("agent:main:slack:dm:UBOB").unwrap();
        assert_eq!(written, SessionKey::parse("agent:main:slack:dm:%55%42%4f%42").unwrap());
        assert_eq!(written.parts().last().map(String::as_str), Some("UBOB"));
    }

    #[test]
    fn malformed_session_keys_are_refused() {
        for bad in [
            "",
            "main",
            "agent:",
            "agent:main",
            "agent:Main:x",
            "agent:main:",
            "agent:main:a b",
            "agent:main:%zz",
            "cron:a:b",
            "agent:main:\u{0}",
        ] {
            assert!(SessionKey::parse(bad).is_err(), "{bad:?}");
        }
        assert!(SessionKey::parse(&format!("agent:main:{}", "x".repeat(600))).is_err());
    }

    proptest! {
        #[test]
        fn session_key_parts_round_trip(a in any::<String>(), b in any::<String>()) {
            let key = peer(&a, &b);
            let parts = key.parts();
            prop_assert_eq!(&parts[2..], &[a, "dm".to_owned(), b]);
        }
    }
}
