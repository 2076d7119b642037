//! What of an update is read. Everything but ids may be missing: what Telegram adds or leaves out breaks nothing.

use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct Update {
    pub message: Option<Message>,
    /// What is posted in a channel, in its own name.
    pub channel_post: Option<Message>,
    pub callback_query: Option<Press>,
}

/// Somebody pressed a button under a message of this bot.
#[derive(Deserialize)]
pub(super) struct Press {
    pub id: String,
    pub from: User,
    /// The message the button is under.
    pub message: Option<Message>,
    pub data: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Message {
    pub message_id: i64,
    pub chat: Chat,
    pub from: Option<User>,
    /// The group or channel in whose name it was written.
    pub sender_chat: Option<Chat>,
    /// Telegram put it there itself: a post of the channel that the group belongs to.
    #[serde(default)]
    pub is_automatic_forward: bool,
    pub message_thread_id: Option<i64>,
    #[serde(default)]
    pub is_topic_message: bool,
    pub reply_to_message: Option<Box<Message>>,
    pub text: Option<String>,
    #[serde(default)]
    pub entities: Vec<Entity>,
    pub caption: Option<String>,
    #[serde(default)]
    pub caption_entities: Vec<Entity>,
    /// The same picture in several sizes.
    #[serde(default)]
    pub photo: Vec<Media>,
    pub document: Option<Media>,
    pub audio: Option<Media>,
    pub voice: Option<Media>,
    pub video: Option<Media>,
    pub video_note: Option<Media>,
}

#[derive(Deserialize)]
pub(super) struct Chat {
    pub id: i64,
    #[serde(rename = "type")]
    pub kind: String,
    pub title: Option<String>,
}

#[derive(Clone, Deserialize)]
pub(super) struct User {
    pub id: i64,
    #[serde(default)]
    pub is_bot: bool,
    #[serde(default)]
    pub first_name: String,
    pub last_name: Option<String>,
    pub username: Option<String>,
}

/// A stretch of the text that means something, counted in UTF-16 units.
#[derive(Deserialize)]
pub(super) struct Entity {
    #[serde(rename = "type")]
    pub kind: String,
    pub offset: usize,
    pub length: usize,
    pub user: Option<User>,
}

#[derive(Deserialize)]
pub(super) struct Media {
    pub file_id: String,
    pub file_name: Option<String>,
    pub mime_type: Option<String>,
    pub file_size: Option<u64>,
}
