//! The fields of gateway events that are read. Ids are strings, and optional fields may be absent.

use serde::Deserialize;
use serde_json::Value;

/// A frame received over the gateway.
#[derive(Deserialize)]
pub(super) struct GatewayFrame {
    pub op: u64,
    #[serde(default)]
    pub d: Value,
    /// The sequence number of an event.
    pub s: Option<u64>,
    /// The type of an event.
    pub t: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ReadyEvent {
    pub session_id: String,
    pub resume_gateway_url: Option<String>,
    pub user: DiscordUser,
    /// The servers that the bot is in. Each one follows in a `GUILD_CREATE` event.
    #[serde(default)]
    pub guilds: Vec<UnavailableGuild>,
}

#[derive(Deserialize)]
pub(super) struct UnavailableGuild {
    pub id: String,
}

#[derive(Deserialize)]
pub(super) struct DiscordUser {
    pub id: String,
    #[serde(default)]
    pub username: String,
    pub global_name: Option<String>,
    #[serde(default)]
    pub bot: bool,
}

/// A user's membership in a server.
#[derive(Deserialize)]
pub(super) struct GuildMember {
    /// Set only if the event does not name the user elsewhere.
    pub user: Option<DiscordUser>,
    pub nick: Option<String>,
    #[serde(default)]
    pub roles: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct DiscordMessage {
    pub id: String,
    pub channel_id: String,
    pub guild_id: Option<String>,
    #[serde(rename = "type", default)]
    pub kind: u64,
    pub author: DiscordUser,
    pub member: Option<GuildMember>,
    pub webhook_id: Option<String>,
    #[serde(default)]
    pub content: String,
    #[serde(default)]
    pub mentions: Vec<DiscordUser>,
    pub referenced_message: Option<Box<ReferencedMessage>>,
    #[serde(default)]
    pub attachments: Vec<DiscordAttachment>,
}

#[derive(Deserialize)]
pub(super) struct ReferencedMessage {
    pub author: Option<DiscordUser>,
}

#[derive(Deserialize)]
pub(super) struct DiscordAttachment {
    #[serde(default)]
    pub filename: String,
    #[serde(default)]
    pub content_type: String,
    pub size: Option<u64>,
    #[serde(default)]
    pub url: String,
}

#[derive(Deserialize)]
pub(super) struct DiscordGuild {
    pub id: String,
    #[serde(default)]
    pub channels: Vec<DiscordChannel>,
    #[serde(default)]
    pub threads: Vec<DiscordChannel>,
}

#[derive(Deserialize)]
pub(super) struct DiscordChannel {
    pub id: String,
    #[serde(rename = "type", default)]
    pub kind: u64,
    /// The parent channel of a thread, or the category of a channel.
    pub parent_id: Option<String>,
    pub last_message_id: Option<String>,
}

impl DiscordChannel {
    pub fn is_thread(&self) -> bool {
        matches!(self.kind, 10..=12)
    }

    /// Whether the channel holds messages: text, voice, announcement and stage channels, and threads. Forums hold only
    /// threads.
    pub fn has_messages(&self) -> bool {
        matches!(self.kind, 0 | 2 | 5 | 13) || self.is_thread()
    }
}

#[derive(Deserialize)]
pub(super) struct DiscordInteraction {
    pub id: String,
    pub application_id: String,
    #[serde(rename = "type")]
    pub kind: u64,
    pub token: String,
    pub channel_id: Option<String>,
    pub guild_id: Option<String>,
    pub member: Option<GuildMember>,
    pub user: Option<DiscordUser>,
    #[serde(default)]
    pub data: Value,
}
