//! What of the gateway's events is read. Ids are text; what is missing breaks nothing.

use serde::Deserialize;
use serde_json::Value;

/// What came over the gateway.
#[derive(Deserialize)]
pub(super) struct GatewayFrame {
    pub op: u64,
    #[serde(default)]
    pub d: Value,
    /// The number of an event.
    pub s: Option<u64>,
    /// The kind of an event.
    pub t: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ReadyEvent {
    pub session_id: String,
    pub resume_gateway_url: Option<String>,
    pub user: DiscordUser,
    /// The servers that the bot is in; each is told about later.
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

/// What a person is in a server.
#[derive(Deserialize)]
pub(super) struct GuildMember {
    /// Only where the event does not name the user beside it.
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
    /// Of a thread, the channel it hangs on; of a channel, its heading.
    pub parent_id: Option<String>,
    pub last_message_id: Option<String>,
}

impl DiscordChannel {
    pub fn is_thread(&self) -> bool {
        matches!(self.kind, 10..=12)
    }

    /// Text, voice, announcements, stages and threads; forums hold threads only.
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
