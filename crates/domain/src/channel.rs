//! Channels: where people are. An address comes whole from one inbound event and is never put together.

use serde::{Deserialize, Serialize};

use crate::delivery::OutgoingMessage;
use crate::inbound::InboundContext;
use crate::message::MessageAttachment;
use crate::port::BoxFuture;

/// Messages between sessions. It has no adapter, so nothing on it can leave.
pub const INTERNAL_CHANNEL: &str = "internal";

/// Agents of other instances, reached through the control plane. There are no people here.
pub const REMOTE_CHANNEL: &str = "cp";

/// Conversations people read where they are kept: nothing is sent, the stored reply is the delivery.
pub const PULL_CHANNELS: [&str; 3] = ["api", "cli", "web"];

/// Programs that post messages to `/hooks/<name>`.
pub const WEBHOOK_CHANNEL: &str = "webhook";

/// Where people have accounts of their own.
pub const CHAT_PLATFORMS: [&str; 5] = ["telegram", "discord", "slack", "whatsapp", "matrix"];

/// Every channel that a message of a person can come by.
pub fn known_channels() -> Vec<&'static str> {
    CHAT_PLATFORMS.into_iter().chain([WEBHOOK_CHANNEL]).chain(PULL_CHANNELS).collect()
}

/// Where a message came from and where its reply goes: one value, taken whole from one inbound event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ChatAddress {
    pub channel: String,
    pub account: String,
    pub peer: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

impl ChatAddress {
    /// Who speaks there, as the rules about senders name them.
    pub fn sender_key(&self) -> String {
        format!("{}:{}:{}", self.channel, self.account, self.peer)
    }

    /// Where messages between sessions are: nothing said there leaves.
    pub fn internal() -> Self {
        Self {
            channel: INTERNAL_CHANNEL.to_owned(),
            account: String::new(),
            peer: String::new(),
            thread: None,
        }
    }

    /// Agents of another instance are there, and no people.
    pub fn is_remote(&self) -> bool {
        self.channel == REMOTE_CHANNEL
    }

    pub fn is_pull_channel(&self) -> bool {
        PULL_CHANNELS.contains(&self.channel.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelCapabilities {
    /// The platform recognises a repeated key, so an unknown send may be tried again.
    pub idempotent_send: bool,
    /// Longest text of one message, in characters.
    pub max_chars: usize,
    /// A message can be changed after it was sent, so an answer can be shown while it grows.
    pub edits: bool,
    /// Whoever writes sees that it was taken: somebody types, or a call is answered. Where it is not so, whoever has to wait is
    /// told in a line.
    pub acknowledges: bool,
}

/// What became of one send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// The platform has it, under this id of its own.
    Accepted { platform_id: Option<String> },
    /// The platform said no; trying again is pointless.
    Rejected { reason: String },
    /// The platform said not now, or was not reached at all: nothing was sent.
    Retry { reason: String, after_ms: Option<u64> },
    /// The request went out and no answer came back.
    Unknown { reason: String },
}

/// How an account stands with its platform.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ConnectionState {
    /// It has not been heard of yet.
    #[default]
    Connecting,
    Connected,
    /// It is not connected, and why.
    Disconnected(String),
    /// It keeps no connection: its platform calls, or it only sends.
    WebhookOnly,
    /// This other node has it.
    OnOtherNode(String),
}

/// A message as its platform delivered it.
#[derive(Clone, Debug, PartialEq)]
pub struct InboundMessage {
    pub context: InboundContext,
    /// Where the reply goes, whole.
    pub address: ChatAddress,
    /// The platform's own id: the same letter comes twice, and is taken once.
    pub platform_id: String,
    pub text: String,
    pub attachments: Vec<AttachmentRef>,
    /// The account is named in the text, or it replies to the account.
    pub mentioned: bool,
    /// What the platform calls its sender, for people to read.
    pub sender_name: Option<String>,
}

/// What is attached to a letter, as its platform describes it. What is in it is asked for once the letter is let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachmentRef {
    pub name: String,
    /// Empty where the platform does not say.
    pub media_type: String,
    /// In bytes, where the platform says.
    pub size: Option<u64>,
    /// Where everybody may fetch it.
    pub url: Option<String>,
    /// By what the account finds it: an id or an address, never with a token in it. `None`: it can not be fetched.
    pub handle: Option<String>,
}

impl AttachmentRef {
    /// As a message names it that does not have what is in it.
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

/// Whether the platform may forget a letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IngestOutcome {
    /// It is durable, or was refused for good.
    Done,
    /// It could not be kept now: it has to be delivered again.
    Retry { reason: String },
}

/// Where an adapter puts what people write. It acknowledges to its platform what was taken, after it was taken.
pub trait InboundSink: Send + Sync {
    fn ingest_message(&self, message: InboundMessage) -> BoxFuture<'_, IngestOutcome>;

    /// Where single people have written to an account, those who did last first: for platforms that do not tell.
    fn recent_dm_addresses<'a>(
        &'a self,
        _channel: &'a str,
        _account: &'a str,
    ) -> BoxFuture<'a, Vec<ChatAddress>> {
        Box::pin(async { Vec::new() })
    }
}

/// A line of the command menu that platforms show beside the text field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MenuItem {
    /// Lower case, `[a-z0-9_]`, at most 32 characters.
    pub command: String,
    pub description: String,
}

/// A request of a platform to this instance, for platforms that call instead of being called.
#[derive(Clone, Debug)]
pub struct WebhookRequest {
    pub method: String,
    pub query: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookResponse {
    pub status: u16,
    pub media_type: &'static str,
    pub body: String,
}

/// A platform, with all of its accounts. What one cannot do it leaves as it is here.
pub trait ChannelAdapter: Send + Sync {
    fn capabilities(&self, account: &str) -> ChannelCapabilities;

    /// How an account stands with its platform; `None`: there is no such account here.
    fn connection_state(&self, _account: &str) -> Option<ConnectionState> {
        Some(ConnectionState::WebhookOnly)
    }

    /// How long a platform that recognises a repeated key does so; for ever where nothing is said.
    fn idempotency_window_ms(&self, _account: &str) -> Option<i64> {
        None
    }

    /// Sends one part. `key` names this part for ever; a platform that knows keys will not show it twice.
    fn send<'a>(&'a self, key: &'a str, outgoing: &'a OutgoingMessage) -> BoxFuture<'a, SendOutcome>;

    /// Puts other text into a message that was sent.
    fn edit_message<'a>(
        &'a self,
        _platform_id: &'a str,
        _outgoing: &'a OutgoingMessage,
    ) -> BoxFuture<'a, SendOutcome> {
        Box::pin(async { SendOutcome::Rejected { reason: "messages cannot be changed here".to_owned() } })
    }

    /// Shows that an answer is being written, for the few seconds a platform shows that.
    fn send_typing<'a>(&'a self, _address: &'a ChatAddress) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// What is in a file that came with a letter to this account. What does not come is only named.
    fn fetch_attachment<'a>(
        &'a self,
        _account: &'a str,
        attached: &'a AttachmentRef,
    ) -> BoxFuture<'a, MessageAttachment> {
        Box::pin(async move { attached.to_attachment() })
    }

    /// Makes these the commands that an account offers.
    fn set_command_menu<'a>(
        &'a self,
        _account: &'a str,
        _items: &'a [MenuItem],
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    /// The accounts that keep a connection of their own: one node at a time may have it.
    fn connection_accounts(&self) -> Vec<String> {
        Vec::new()
    }

    /// Receives for one of them until it is dropped. A connection that breaks is made again, with growing pauses; an
    /// account that cannot work says so in the log.
    fn receive_messages<'a>(&'a self, _account: &'a str, _inbox: &'a dyn InboundSink) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// Answers `/channels/<channel>/<account>`. It checks by itself that the platform is who calls.
    fn handle_webhook<'a>(
        &'a self,
        _account: &'a str,
        _call: WebhookRequest,
        _inbox: &'a dyn InboundSink,
    ) -> BoxFuture<'a, WebhookResponse> {
        Box::pin(async {
            WebhookResponse {
                status: 404,
                media_type: "text/plain",
                body: "nobody is called here".to_owned(),
            }
        })
    }
}
