//! The fields of updates that are read. All but ids are optional, so additions and omissions by Telegram break nothing.

use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct TelegramUpdate {
    pub message: Option<TelegramMessage>,
    /// A post in a channel, in the name of the channel.
    pub channel_post: Option<TelegramMessage>,
    pub callback_query: Option<CallbackQuery>,
}

/// A press of a button under a message of this bot.
#[derive(Deserialize)]
pub(super) struct CallbackQuery {
    pub id: String,
    pub from: TelegramUser,
    /// The message with the button.
    pub message: Option<TelegramMessage>,
    pub data: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct TelegramMessage {
    pub message_id: i64,
    pub chat: TelegramChat,
    pub from: Option<TelegramUser>,
    /// The group or channel in whose name the message was written.
    pub sender_chat: Option<TelegramChat>,
    /// An automatic copy by Telegram of a post in the channel that is linked to the group.
    #[serde(default)]
    pub is_automatic_forward: bool,
    pub message_thread_id: Option<i64>,
    #[serde(default)]
    pub is_topic_message: bool,
    pub reply_to_message: Option<Box<TelegramMessage>>,
    pub text: Option<String>,
    #[serde(default)]
    pub entities: Vec<MessageEntity>,
    pub caption: Option<String>,
    #[serde(default)]
    pub caption_entities: Vec<MessageEntity>,
    /// The same photo in several sizes.
    #[serde(default)]
    pub photo: Vec<TelegramMedia>,
    pub document: Option<TelegramMedia>,
    pub audio: Option<TelegramMedia>,
    pub voice: Option<TelegramMedia>,
    pub video: Option<TelegramMedia>,
    pub video_note: Option<TelegramMedia>,
}

#[derive(Deserialize)]
pub(super) struct TelegramChat {
    pub id: i64,
    #[serde(rename = "type")]
    pub kind: String,
    pub title: Option<String>,
}

#[derive(Clone, Deserialize)]
pub(super) struct TelegramUser {
    pub id: i64,
    #[serde(default)]
    pub is_bot: bool,
    #[serde(default)]
    pub first_name: String,
    pub last_name: Option<String>,
    pub username: Option<String>,
}

/// A marked range of the text, counted in UTF-16 code units.
#[derive(Deserialize)]
pub(super) struct MessageEntity {
    #[serde(rename = "type")]
    pub kind: String,
    pub offset: usize,
    pub length: usize,
    pub user: Option<TelegramUser>,
}

#[derive(Deserialize)]
pub(super) struct TelegramMedia {
    pub file_id: String,
    pub file_name: Option<String>,
    pub mime_type: Option<String>,
    pub file_size: Option<u64>,
}
