//! A Discord emulator: a gateway with resumable sessions and a bot's REST calls. Scripts can make every call fail and
//! end every connection in each possible way.

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

/// How to end a gateway connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayEnd {
    /// The connection breaks without a message.
    Drop,
    /// Discord asks the client to reconnect.
    Reconnect,
    /// The session is declared invalid, resumable or not.
    Invalid { resumable: bool },
    /// The connection is closed with a code.
    Close(u16),
    /// Heartbeats are no longer answered.
    Silence,
}

/// Calls are named like `POST messages`.
pub type DiscordEmulator = PlatformEmulator<DiscordState>;

impl DiscordEmulator {
    /// Listens on a free loopback port, without any bots. `heartbeat_ms` is the heartbeat interval that it requests.
    pub fn start(heartbeat_ms: u64) -> Self {
        let state = Arc::new(DiscordState::new(heartbeat_ms));
        let shared = Arc::clone(&state);
        let server =
            EmulatorServer::start(move |request| serve::handle_request(Arc::clone(&shared), request));
        state.set_address(server.address);
        Self { server, state }
    }

    /// Returns the `api_url`.
    pub fn api_url(&self) -> String {
        format!("http://{}/api/v10", self.server.address)
    }

    /// Adds a bot with this token.
    pub fn add_bot(&self, token: &str, id: &str) {
        self.state.add_bot(token, id);
    }

    /// Adds a channel of the server `guild`. With a parent it is a thread.
    pub fn add_channel(&self, id: &str, guild: &str, parent: Option<&str>) {
        self.state.add_channel(id, guild, parent);
    }

    /// Sets the URL at which bots must resume their sessions.
    pub fn set_resume_url(&self, url: &str) {
        let _ = self.state.resume_url.set(url.to_owned());
    }

    /// Sends a bot all servers again, as when it joins one.
    pub fn announce_guilds(&self, token: &str) {
        for guild in self.state.guilds() {
            self.dispatch_event(token, "GUILD_CREATE", guild);
        }
    }

    /// Writes a direct message to a bot as a person.
    pub fn send_dm(&self, token: &str, person: &str, text: &str) -> String {
        self.write_message(token, &format!("9{person}"), person, text, json!({}))
    }

    /// Writes in a channel of a server as a person.
    pub fn send_in_channel(&self, token: &str, channel: &str, text: &str, over: Value) -> String {
        self.write_message(token, channel, "5", text, over)
    }

    /// Writes a message. The fields of `over` replace those of the message.
    pub fn write_message(&self, token: &str, channel: &str, person: &str, text: &str, over: Value) -> String {
        self.state.write_message(token, channel, person, text, over)
    }

    /// Presses a button under a bot's message as a person, in its channel or in a direct message.
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

    /// Sends any event.
    pub fn dispatch_event(&self, token: &str, kind: &str, data: Value) {
        self.state.dispatch_event(token, kind, data);
    }

    /// Ends a bot's connection. Events are still recorded for its session, unless the session ends too.
    pub fn end_connection(&self, token: &str, end: GatewayEnd) {
        self.state.end_connection(token, end);
    }

    /// Ends a bot's connection and forgets its session. Events are lost until the bot is back.
    pub fn forget_session(&self, token: &str) {
        self.state.forget_session(token);
    }

    /// Returns how often a bot identified itself, and how often it resumed a session.
    pub fn opening_counts(&self, token: &str) -> (usize, usize) {
        self.state.opening_counts(token)
    }

    /// Returns the sequence number of the last heartbeat.
    pub fn last_heartbeat(&self, token: &str) -> Option<u64> {
        self.state.last_heartbeat(token)
    }
}
