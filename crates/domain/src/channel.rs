//! Channels: where people are. An address comes whole from one inbound event and is never put together.

use serde::{Deserialize, Serialize};

use crate::delivery::Outgoing;
use crate::port::Pending;

/// Messages between sessions. It has no adapter, so nothing on it can leave.
pub const INTERNAL: &str = "internal";

/// Conversations people read where they are kept: nothing is sent, the stored reply is the delivery.
pub const PULLED: [&str; 3] = ["api", "cli", "web"];

/// Where a message came from and where its reply goes: one value, taken whole from one inbound event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Address {
    pub channel: String,
    pub account: String,
    pub peer: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

impl Address {
    pub fn is_pulled(&self) -> bool {
        PULLED.contains(&self.channel.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The platform recognises a repeated key, so an unknown send may be tried again.
    pub idempotent_send: bool,
    /// Longest text of one message, in characters.
    pub max_chars: usize,
}

/// What became of one send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The platform has it, under this id of its own.
    Accepted { platform_id: Option<String> },
    /// The platform said no; trying again is pointless.
    Rejected { reason: String },
    /// The platform said not now, or was not reached at all: nothing was sent.
    Retry { reason: String, after_ms: Option<u64> },
    /// The request went out and no answer came back.
    Unknown { reason: String },
}

pub trait Channel: Send + Sync {
    fn capabilities(&self, account: &str) -> Capabilities;

    /// Sends one part. `key` names this part for ever; a platform that knows keys will not show it twice.
    fn send<'a>(&'a self, key: &'a str, outgoing: &'a Outgoing) -> Pending<'a, Sent>;
}
