//! Channels: where people write. An address is taken unchanged from one inbound event and never assembled from parts.

use serde::{Deserialize, Serialize};

use crate::delivery::OutgoingMessage;
use crate::inbound::InboundContext;
use crate::message::MessageAttachment;
use crate::port::BoxFuture;

/// Messages between sessions. This channel has no adapter, so nothing on it leaves the instance.
pub const INTERNAL_CHANNEL: &str = "internal";

/// Agents of other instances, reached through the control plane. No people use this channel.
pub const REMOTE_CHANNEL: &str = "cp";

/// Channels whose conversations are read from storage: nothing is sent, storing the reply delivers it.
pub const PULL_CHANNELS: [&str; 3] = ["api", "cli", "web"];

/// Programs that post messages to `/hooks/<name>`.
pub const WEBHOOK_CHANNEL: &str = "webhook";

/// Chat platforms on which people have accounts of their own.
pub const CHAT_PLATFORMS: [&str; 5] = ["telegram", "discord", "slack", "whatsapp", "matrix"];

/// Returns every channel on which a message from a person can arrive.
pub fn known_channels() -> Vec<&'static str> {
    CHAT_PLATFORMS.into_iter().chain([WEBHOOK_CHANNEL]).chain(PULL_CHANNELS).collect()
}

/// Where a message came from and where its reply goes, taken unchanged from one inbound event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ChatAddress {
    pub channel: String,
    pub account: String,
    pub peer: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

impl ChatAddress {
    /// Returns the sender as sender rules name it: `channel:account:peer`.
    pub fn sender_key(&self) -> String {
        format!("{}:{}:{}", self.channel, self.account, self.peer)
    }

    /// Returns the address of messages between sessions. Nothing on it leaves the instance.
    pub fn internal() -> Self {
        Self {
            channel: INTERNAL_CHANNEL.to_owned(),
            account: String::new(),
            peer: String::new(),
            thread: None,
        }
    }

    /// Returns whether the peer is an agent of another instance, not a person.
    pub fn is_remote(&self) -> bool {
        self.channel == REMOTE_CHANNEL
    }

    pub fn is_pull_channel(&self) -> bool {
        PULL_CHANNELS.contains(&self.channel.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelCapabilities {
    /// The platform recognises a repeated idempotency key, so a send with an unknown outcome may be retried.
    pub idempotent_send: bool,
    /// Longest text of one message, in characters.
    pub max_chars: usize,
    /// Sent messages can be edited, so a growing answer can be shown.
    pub edits: bool,
    /// Senders see that their message was received, by a typing indicator or a response. Without it, a sender who has
    /// to wait gets a message that says so.
    pub acknowledges: bool,
}

/// Outcome of one send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// The platform accepted the message. `platform_id` is its id there.
    Accepted { platform_id: Option<String> },
    /// The platform rejected the message; a retry is pointless.
    Rejected { reason: String },
    /// The platform asked for a retry or was unreachable. Nothing was sent.
    Retry { reason: String, after_ms: Option<u64> },
    /// The request was sent but no response arrived.
    Unknown { reason: String },
}

/// State of an account's connection to its platform.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ConnectionState {
    /// No state was reported yet.
    #[default]
    Connecting,
    Connected,
    /// Not connected, with the reason.
    Disconnected(String),
    /// The account keeps no connection: the platform calls webhooks, or the account only sends.
    WebhookOnly,
    /// Another node holds the account.
    OnOtherNode(String),
}

/// A message as its platform delivered it.
#[derive(Clone, Debug, PartialEq)]
pub struct InboundMessage {
    pub context: InboundContext,
    /// The address of the reply.
    pub address: ChatAddress,
    /// The platform's own id. The platform may deliver a message twice; this id deduplicates it.
    pub platform_id: String,
    pub text: String,
    pub attachments: Vec<AttachmentRef>,
    /// The text mentions the account, or the message replies to it.
    pub mentioned: bool,
    /// The sender's display name on the platform.
    pub sender_name: Option<String>,
}

/// An attachment as its platform describes it. Its content is fetched only after the message is admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachmentRef {
    pub name: String,
    /// Empty if the platform does not tell.
    pub media_type: String,
    /// Size in bytes, if the platform tells.
    pub size: Option<u64>,
    /// A public URL of the file.
    pub url: Option<String>,
    /// The id or URL by which the account fetches the file, without any token. `None` if it cannot be fetched.
    pub handle: Option<String>,
}

impl AttachmentRef {
    /// Returns the attachment as a message lists it without its content.
    pub fn to_attachment(&self) -> MessageAttachment {
        let media_type = match self.media_type.as_str() {
            "" => "application/octet-stream",
            media_type => media_type,
        };
        MessageAttachment {
            name: self.name.clone(),
            media_type: media_type.to_owned(),
            url: self.url.clone(),
            text: None,
            media: None,
        }
    }
}

/// Whether the platform may forget a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IngestOutcome {
    /// The message is stored, or was rejected for good.
    Done,
    /// The message could not be stored; the platform has to deliver it again.
    Retry { reason: String },
}

/// Receives messages from adapters. An adapter acknowledges a message to its platform only after this sink has taken
/// it.
pub trait InboundSink: Send + Sync {
    fn ingest_message(&self, message: InboundMessage) -> BoxFuture<'_, IngestOutcome>;

    /// Returns the direct-message addresses of an account, most recent first, for platforms that cannot list them.
    fn recent_dm_addresses<'a>(
        &'a self,
        _channel: &'a str,
        _account: &'a str,
    ) -> BoxFuture<'a, Vec<ChatAddress>> {
        Box::pin(async { Vec::new() })
    }
}

/// An entry of the command menu that platforms show next to the text field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MenuItem {
    /// Lower case, `[a-z0-9_]`, at most 32 characters.
    pub command: String,
    pub description: String,
}

/// A webhook request of a platform to this instance.
#[derive(Clone, Debug)]
pub struct WebhookRequest {
    pub method: String,
    pub query: String,
    /// Header names are lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookResponse {
    pub status: u16,
    pub media_type: &'static str,
    pub body: String,
}

/// A chat platform with all of its accounts. The default methods are for platforms that lack the feature.
pub trait ChannelAdapter: Send + Sync {
    fn capabilities(&self, account: &str) -> ChannelCapabilities;

    /// Returns the state of an account's connection. `None` if the adapter has no such account.
    fn connection_state(&self, _account: &str) -> Option<ConnectionState> {
        Some(ConnectionState::WebhookOnly)
    }

    /// Returns how long the platform recognises a repeated idempotency key. `None` means forever.
    fn idempotency_window_ms(&self, _account: &str) -> Option<i64> {
        None
    }

    /// Sends one part. `key` identifies this part permanently; a platform with idempotency keys never shows it twice.
    fn send<'a>(&'a self, key: &'a str, outgoing: &'a OutgoingMessage) -> BoxFuture<'a, SendOutcome>;

    /// Replaces the text of a sent message.
    fn edit_message<'a>(
        &'a self,
        _platform_id: &'a str,
        _outgoing: &'a OutgoingMessage,
    ) -> BoxFuture<'a, SendOutcome> {
        Box::pin(async {
            SendOutcome::Rejected { reason: "this channel does not support editing messages".to_owned() }
        })
    }

    /// Shows a typing indicator, for the few seconds that the platform keeps it.
    fn send_typing<'a>(&'a self, _address: &'a ChatAddress) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// Fetches the content of an attachment to this account. On failure the attachment is returned by name only.
    fn fetch_attachment<'a>(
        &'a self,
        _account: &'a str,
        attached: &'a AttachmentRef,
    ) -> BoxFuture<'a, MessageAttachment> {
        Box::pin(async move { attached.to_attachment() })
    }

    /// Sets the commands that an account offers.
    fn set_command_menu<'a>(
        &'a self,
        _account: &'a str,
        _items: &'a [MenuItem],
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    /// Returns the accounts that keep a connection. Only one node at a time may connect each.
    fn connection_accounts(&self) -> Vec<String> {
        Vec::new()
    }

    /// Receives messages of one account until the future is dropped. Reconnects with growing delays. Logs when the
    /// account cannot work.
    fn receive_messages<'a>(&'a self, _account: &'a str, _inbox: &'a dyn InboundSink) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// Handles `/channels/<channel>/<account>`. The adapter verifies that the platform is the caller.
    fn handle_webhook<'a>(
        &'a self,
        _account: &'a str,
        _call: WebhookRequest,
        _inbox: &'a dyn InboundSink,
    ) -> BoxFuture<'a, WebhookResponse> {
        Box::pin(async {
            WebhookResponse { status: 404, media_type: "text/plain", body: "not found".to_owned() }
        })
    }
}
