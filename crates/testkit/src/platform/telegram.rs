//! A Telegram Bot API emulator: bots identified by token, updates that stay until confirmed, and visible messages.
//! Scripts can make every method fail.

mod serve;
mod state;

use std::sync::Arc;

use serde_json::{Value, json};

pub use super::board::{RecordedCall, VisibleMessage};
use super::emulator::PlatformEmulator;
use super::server::EmulatorServer;
use state::TelegramState;

/// Calls are named after API methods.
pub type TelegramEmulator = PlatformEmulator<TelegramState>;

impl TelegramEmulator {
    /// Listens on a free loopback port, without any bots.
    pub fn start() -> Self {
        let state = Arc::new(TelegramState::default());
        let shared = Arc::clone(&state);
        let server =
            EmulatorServer::start(move |request| serve::handle_request(Arc::clone(&shared), request));
        Self { server, state }
    }

    /// Returns the `api_url`.
    pub fn api_url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Adds a bot with this token.
    pub fn add_bot(&self, token: &str, id: i64, username: &str) {
        self.state.add_bot(
            token,
            json!({ "id": id, "is_bot": true, "first_name": username, "username": username }),
        );
    }

    /// Writes a direct message to a bot as a person. Returns the message ID.
    pub fn send_dm(&self, token: &str, person: i64, text: &str) -> i64 {
        let chat = json!({ "id": person, "type": "private", "first_name": "Ann" });
        self.deliver_message(token, json!({ "chat": chat, "from": human_user(person), "text": text }))
    }

    /// Writes in a group as a person, optionally in a topic.
    pub fn send_in_group(&self, token: &str, group: i64, topic: Option<i64>, text: &str) -> i64 {
        let chat =
            json!({ "id": group, "type": "supergroup", "title": "Group", "is_forum": topic.is_some() });
        let mut message = json!({ "chat": chat, "from": human_user(5), "text": text });
        if let Some(topic) = topic {
            message["message_thread_id"] = topic.into();
            message["is_topic_message"] = true.into();
        }
        self.deliver_message(token, message)
    }

    /// Presses a button under a bot's message as a person.
    pub fn press_button(&self, message: &VisibleMessage, person: i64, label: &str) {
        let data = self.state.board.button_value(message, label);
        let chat: i64 = message.chat.parse().unwrap_or_default();
        let kind = if chat > 0 { "private" } else { "supergroup" };
        let mut under = json!({ "message_id": message.id.parse::<i64>().unwrap_or_default(), "date": 0,
            "chat": { "id": chat, "type": kind }, "text": message.text });
        if let Some(topic) = &message.thread {
            under["message_thread_id"] = topic.parse::<i64>().unwrap_or_default().into();
            under["is_topic_message"] = true.into();
        }
        let id = self.state.next_id().to_string();
        let press = json!({ "id": id, "from": human_user(person), "message": under, "chat_instance": "1", "data": data });
        self.queue_update(&message.bot, json!({ "callback_query": press }));
    }

    /// Delivers any message. Its ID and date are added.
    pub fn deliver_message(&self, token: &str, mut message: Value) -> i64 {
        let id = self.state.next_id();
        message["message_id"] = id.into();
        message["date"] = 1_700_000_000.into();
        self.queue_update(token, json!({ "message": message }));
        id
    }

    /// Queues any update. Its ID is added.
    pub fn queue_update(&self, token: &str, update: Value) {
        self.state.queue_update(token, update);
    }

    /// Adds a file that can be fetched by its ID.
    pub fn add_file(&self, id: &str, content: &[u8]) {
        self.state.add_file(id, content);
    }

    /// Returns the maximum number of concurrent polls for a bot's updates. Telegram allows only one.
    pub fn max_concurrent_polls(&self, token: &str) -> usize {
        self.state.max_concurrent_polls(token)
    }

    /// Returns the number of updates that a bot has not confirmed.
    pub fn unconfirmed_count(&self, token: &str) -> usize {
        self.state.unconfirmed_count(token)
    }
}

fn human_user(id: i64) -> Value {
    json!({ "id": id, "is_bot": false, "first_name": "Ann", "username": format!("ann{id}") })
}
