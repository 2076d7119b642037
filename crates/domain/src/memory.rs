//! Memories: what an agent remembers beyond a conversation, who sees it, and how its text is split for the index.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agent::{ContextPolicy, MemoryScope};
use crate::id::{AgentId, MemoryId};
use crate::session_key::SessionKey;
use crate::time::Millis;

pub mod file;
pub mod flush;
pub mod words;

/// Maximum size of one memory's text, in bytes. Longer text is a document and belongs in a file.
pub const MAX_CONTENT_BYTES: usize = 16 * 1024;
/// Maximum size of a key and of a kind, in bytes.
pub const MAX_KEY_BYTES: usize = 200;
/// Maximum size of metadata, in bytes of JSON.
pub const MAX_METADATA_BYTES: usize = 4 * 1024;

/// The kind of a memory if none is given.
pub const DEFAULT_MEMORY_KIND: &str = "fact";

/// One memory, as it is listed, exported and imported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryEntry {
    pub id: MemoryId,
    #[serde(rename = "agent_id")]
    pub agent: AgentId,
    /// The session in which it was learned, whatever its scope.
    #[serde(rename = "session_key")]
    pub session: SessionKey,
    pub scope: MemoryScope,
    /// Unique within its owner: storing under the same key replaces the memory.
    pub key: String,
    pub kind: String,
    pub content: String,
    #[serde(default)]
    pub metadata: Map<String, Value>,
    pub created_at: Millis,
    pub updated_at: Millis,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMemory {
    #[error("the content of a memory must not be empty")]
    Empty,
    #[error("{what} has {bytes} bytes; at most {most} are allowed")]
    TooLong { what: &'static str, bytes: usize, most: usize },
}

impl MemoryEntry {
    /// Checks the limits of the store.
    pub fn validate_limits(&self) -> Result<(), InvalidMemory> {
        if self.content.trim().is_empty() {
            return Err(InvalidMemory::Empty);
        }
        let metadata = if self.metadata.is_empty() { 0 } else { json_bytes(&self.metadata) };
        let parts = [
            ("the content", self.content.len(), MAX_CONTENT_BYTES),
            ("the key", self.key.len(), MAX_KEY_BYTES),
            ("the kind", self.kind.len(), MAX_KEY_BYTES),
            ("the metadata", metadata, MAX_METADATA_BYTES),
        ];
        let long = parts.into_iter().find(|(_, bytes, most)| bytes > most);
        long.map_or(Ok(()), |(what, bytes, most)| Err(InvalidMemory::TooLong { what, bytes, most }))
    }
}

fn json_bytes(map: &Map<String, Value>) -> usize {
    serde_json::to_string(map).map_or(usize::MAX, |text| text.len())
}

impl MemoryScope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Agent => "agent",
            Self::Session => "session",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Shared, Self::Agent, Self::Session].into_iter().find(|scope| scope.as_str() == text)
    }

    /// Returns the rank of a scope: a higher one is visible to more sessions.
    fn scope_width(self) -> u8 {
        match self {
            Self::Session => 0,
            Self::Agent => 1,
            Self::Shared => 2,
        }
    }

    /// Returns the narrower of two scopes.
    pub fn narrower_of(self, most: Self) -> Self {
        if self.scope_width() <= most.scope_width() { self } else { most }
    }
}

/// The viewer of memories. Decides which are visible; the store applies the same rules in SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryViewer {
    pub agent: AgentId,
    pub session: SessionKey,
    pub scope: MemoryScope,
    /// Only these kinds. If empty, all.
    pub kinds: Vec<String>,
}

impl MemoryViewer {
    pub fn for_session(agent: &AgentId, session: &SessionKey, policy: &ContextPolicy) -> Self {
        Self {
            agent: agent.clone(),
            session: session.clone(),
            scope: policy.scope,
            kinds: policy.kinds.clone(),
        }
    }

    pub fn can_see(&self, memory: &MemoryEntry) -> bool {
        let own = memory.agent == self.agent;
        let scope = match memory.scope {
            MemoryScope::Shared => {
                self.scope == MemoryScope::Shared || (own && self.scope != MemoryScope::Session)
            }
            MemoryScope::Agent => own && self.scope != MemoryScope::Session,
            MemoryScope::Session => own && memory.session == self.session,
        };
        scope && (self.kinds.is_empty() || self.kinds.contains(&memory.kind))
    }
}

/// Returns the scope of a new memory if none is given. What people say in a chat stays in that chat: only the owner's
/// own sessions, which need the instance's token, are known to belong to one person.
pub fn default_scope(policy: MemoryScope, session: &SessionKey) -> MemoryScope {
    if session.is_owner_session() { policy } else { MemoryScope::Session }
}

/// Returns a key derived from the text. The same text of the same origin has the same key, so it is stored once.
pub fn derived_key(prefix: &str, content: &str) -> String {
    // FNV-1a: an identifier, not a secret. Two texts with the same hash would replace each other, which is unlikely
    // with 64 bits.
    let words = content.split_whitespace().flat_map(|word| word.bytes().chain([b' ']));
    let hash = words.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{prefix}:{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> SessionKey {
        SessionKey::parse(text).unwrap()
    }

    #[test]
    fn memory_from_chat_channels_defaults_to_session_scope() {
        for own in ["agent:main:main", "agent:ops:web:dm:x", "agent:ops:cli:dm:y"] {
            assert_eq!(default_scope(MemoryScope::Agent, &key(own)), MemoryScope::Agent, "{own}");
            assert_eq!(default_scope(MemoryScope::Session, &key(own)), MemoryScope::Session, "{own}");
        }
        for other in
            ["agent:main:telegram:dm:7", "agent:main:slack:channel:c1", "agent:main:api:dm:9", "hook:main"]
        {
            assert_eq!(default_scope(MemoryScope::Shared, &key(other)), MemoryScope::Session, "{other}");
        }
    }

    #[test]
    fn memory_scope_is_never_wider_than_policy() {
        use MemoryScope::{Agent, Session, Shared};
        for (wanted, most, given) in [
            (Shared, Agent, Agent),
            (Agent, Shared, Agent),
            (Shared, Session, Session),
            (Session, Shared, Session),
        ] {
            assert_eq!(wanted.narrower_of(most), given);
        }
    }

    #[test]
    fn derived_memory_key_ignores_amount_of_whitespace() {
        assert_eq!(derived_key("note", "a  b\n"), derived_key("note", "a b"));
        assert_ne!(derived_key("note", "a b"), derived_key("note", "ab"));
    }

    #[test]
    fn empty_or_too_long_memory_is_refused() {
        let memory = |content: &str, key: &str| MemoryEntry {
            id: MemoryId::new("m"),
            agent: AgentId::main(),
            session: key_of(),
            scope: MemoryScope::Agent,
            key: key.into(),
            kind: DEFAULT_MEMORY_KIND.into(),
            content: content.into(),
            metadata: Map::new(),
            created_at: Millis(0),
            updated_at: Millis(0),
        };
        assert_eq!(memory(" \n", "k").validate_limits(), Err(InvalidMemory::Empty));
        assert!(matches!(
            memory("x", &"k".repeat(201)).validate_limits(),
            Err(InvalidMemory::TooLong { what: "the key", .. })
        ));
        assert!(memory(&"x".repeat(MAX_CONTENT_BYTES + 1), "k").validate_limits().is_err());
        assert!(memory("x", "").validate_limits().is_ok());
    }

    fn key_of() -> SessionKey {
        SessionKey::main(&AgentId::main())
    }
}
