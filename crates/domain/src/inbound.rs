//! A message as a channel's adapter reports it, before anybody decided who answers.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The kind of conversation a message arrived in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(transform = with_short_name)]
pub enum PeerKind {
    /// One person alone.
    #[serde(rename = "direct", alias = "dm")]
    Dm,
    /// Several people.
    Group,
    /// A channel of a server or workspace.
    Channel,
}

impl PeerKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dm => "direct",
            Self::Group => "group",
            Self::Channel => "channel",
        }
    }

    /// Platforms do not agree on what is a group and what a channel, so rules treat them alike.
    pub fn is_like(self, other: Self) -> bool {
        (self == Self::Dm) == (other == Self::Dm)
    }
}

/// The schema says what may be written as well as what is meant.
fn with_short_name(schema: &mut Schema) {
    if let Some(Value::Array(words)) = schema.get_mut("oneOf") {
        words.push(json!({ "type": "string", "const": "dm", "description": "The same as `direct`." }));
    }
}

/// Whom or what the conversation is with.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatPeer {
    /// One person, a group, or a channel.
    pub kind: PeerKind,
    /// The platform's id of it; `*` stands for all of this kind.
    pub id: String,
}

/// A side conversation inside another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatThread {
    pub kind: ThreadKind,
    pub id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadKind {
    Thread,
    Topic,
}

impl ThreadKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Topic => "topic",
        }
    }
}

/// What decides who answers. The text decides too, but only by its first word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboundContext {
    pub channel: String,
    pub account: String,
    /// Where it was written. A thread that has a peer of its own names it here, and its parent beside it.
    pub peer: ChatPeer,
    #[serde(default)]
    pub parent: Option<ChatPeer>,
    #[serde(default)]
    pub thread: Option<ChatThread>,
    /// The server it belongs to, on platforms that have servers.
    #[serde(default)]
    pub guild: Option<String>,
    /// The workspace it belongs to, on platforms that have workspaces.
    #[serde(default)]
    pub team: Option<String>,
    /// What the sender is in that server.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Who wrote it, by the platform's id.
    pub sender: String,
}
