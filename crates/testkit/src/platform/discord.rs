//! Discord on the wire: a gateway with sessions that can be gone on with, and the REST calls of a bot. Every call can
//! be made to fail as its script says, and every connection to end in each way there is.

mod gateway;
mod rest;
mod serve;
mod state;

use std::sync::Arc;

use serde_json::{Value, json};

pub use super::board::{RecordedCall, VisibleMessage};
use super::emulator::PlatformEmulator;
use super::server::EmulatorServer;
use state::DiscordState;

/// How a gateway connection is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayEnd {
    /// The connection breaks without a word.
    Drop,
    /// Discord asks to connect again.
    Reconnect,
    /// The session is declared invalid: it can be gone on with, or not.
    Invalid { resumable: bool },
    /// The connection is closed with a code.
    Close(u16),
    /// Beats of the heart are not answered any more.
    Silence,
}

/// Its calls are named like `POST messages`.
pub type DiscordEmulator = PlatformEmulator<DiscordState>;

impl DiscordEmulator {
    /// Listens on a free loopback port and knows no bot yet. `heartbeat_ms` is what it asks of connections.
    pub fn start(heartbeat_ms: u64) -> Self {
        let state = Arc::new(DiscordState::new(heartbeat_ms));
        let shared = Arc::clone(&state);
        let server =
            EmulatorServer::start(move |request| serve::handle_request(Arc::clone(&shared), request));
        state.set_address(server.address);
        Self { server, state }
    }

    /// The `api_url`.
    pub fn api_url(&self) -> String {
        format!("http://{}/api/v10", self.server.address)
    }

    /// From now on there is a bot with this token.
    pub fn add_bot(&self, token: &str, id: &str) {
        self.state.add_bot(token, id);
    }

    /// A channel of the server `guild`; with a parent it is a thread.
    pub fn add_channel(&self, id: &str, guild: &str, parent: Option<&str>) {
        self.state.add_channel(id, guild, parent);
    }

    /// Bots are told to go on with their sessions at this address.
    pub fn set_resume_url(&self, url: &str) {
        let _ = self.state.resume_url.set(url.to_owned());
    }

    /// The bot is told about all servers once more, as when it joins one.
    pub fn announce_guilds(&self, token: &str) {
        for guild in self.state.guilds() {
            self.dispatch_event(token, "GUILD_CREATE", guild);
        }
    }

    /// A person writes to a bot in a conversation of their own.
    pub fn send_dm(&self, token: &str, person: &str, text: &str) -> String {
        self.write_message(token, &format!("9{person}"), person, text, json!({}))
    }

    /// A person writes in a channel of a server.
    pub fn send_in_channel(&self, token: &str, channel: &str, text: &str, over: Value) -> String {
        self.write_message(token, channel, "5", text, over)
    }

    /// `over` is put over the message.
    pub fn write_message(&self, token: &str, channel: &str, person: &str, text: &str, over: Value) -> String {
        self.state.write_message(token, channel, person, text, over)
    }

    /// A person presses a button under a message of a bot, in its channel or in a conversation of their own.
    pub fn press_button(&self, message: &VisibleMessage, person: &str, label: &str) {
        let command = self.state.board.button_value(message, label);
        let user = json!({ "id": person, "username": "ann" });
        let mut press = json!({
            "id": self.state.next_id(), "application_id": "1", "type": 3, "token": "press", "version": 1,
            "channel_id": message.chat, "message": { "id": message.id },
            "data": { "component_type": 2, "custom_id": command },
        });
        match self.state.find_channel(&message.chat) {
            Some(channel) if channel["guild_id"].is_string() => {
                press["guild_id"] = channel["guild_id"].clone();
                press["member"] = json!({ "user": user, "roles": [] });
            }
            _ => press["user"] = user,
        }
        self.dispatch_event(&message.bot, "INTERACTION_CREATE", press);
    }

    /// Any event at all.
    pub fn dispatch_event(&self, token: &str, kind: &str, data: Value) {
        self.state.dispatch_event(token, kind, data);
    }

    /// Ends the connection of a bot. Events go on to be kept for its session, unless that ends too.
    pub fn end_connection(&self, token: &str, end: GatewayEnd) {
        self.state.end_connection(token, end);
    }

    /// Ends the connection of a bot and forgets its session: what happens until it is back is told to nobody.
    pub fn forget_session(&self, token: &str) {
        self.state.forget_session(token);
    }

    /// How often a bot identified itself, and how often it went on with a session.
    pub fn opening_counts(&self, token: &str) -> (usize, usize) {
        self.state.opening_counts(token)
    }

    /// The last number that a heartbeat named.
    pub fn last_heartbeat(&self, token: &str) -> Option<u64> {
        self.state.last_heartbeat(token)
    }
}
