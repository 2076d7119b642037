//! The context of an inbound message as its adapter reports it, before routing.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The kind of conversation a message arrived in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(transform = with_short_name)]
pub enum PeerKind {
    /// One person.
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

    /// Returns whether rules treat two kinds alike: platforms disagree on what counts as a group or a channel.
    pub fn is_like(self, other: Self) -> bool {
        (self == Self::Dm) == (other == Self::Dm)
    }
}

/// Adds the accepted short name `dm` to the schema.
fn with_short_name(schema: &mut Schema) {
    if let Some(Value::Array(words)) = schema.get_mut("oneOf") {
        words.push(json!({ "type": "string", "const": "dm", "description": "Same as `direct`." }));
    }
}

/// The other side of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatPeer {
    /// One person, a group, or a channel.
    pub kind: PeerKind,
    /// Its platform id; `*` matches all of this kind.
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

/// The facts that routing uses. Of the text, only the first word counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboundContext {
    pub channel: String,
    pub account: String,
    /// The conversation. A thread with its own peer id is named here, with its parent in `parent`.
    pub peer: ChatPeer,
    #[serde(default)]
    pub parent: Option<ChatPeer>,
    #[serde(default)]
    pub thread: Option<ChatThread>,
    /// The server (guild), on platforms that have servers.
    #[serde(default)]
    pub guild: Option<String>,
    /// The workspace, on platforms that have workspaces.
    #[serde(default)]
    pub team: Option<String>,
    /// The sender's roles in the server.
    #[serde(default)]
    pub roles: Vec<String>,
    /// The platform id of the sender.
    pub sender: String,
}
