//! A Slack emulator: its Web API, its sockets, and its HTTP requests to apps.
//!
//! An app is identified by its name: its tokens are `xoxb-<name>` and `xapp-<name>`, its user is `UBOT`, its team
//! `T1`.

mod socket_mode;
mod web;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::{get, post};
use polyclaw_domain::channel::WebhookRequest;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::board::MessageBoard;
pub use super::board::{RecordedCall, VisibleMessage};
use super::emulator::{EmulatorState, PlatformEmulator};
use super::state::lock;
use super::{router, signature};

/// Calls are named after API methods.
pub type SlackEmulator = PlatformEmulator<SlackState>;

pub struct SlackState {
    board: MessageBoard,
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    envelopes: Mutex<Vec<UnackedEnvelope>>,
    orders: broadcast::Sender<SocketOrder>,
    /// Number of sockets opened so far.
    links: AtomicUsize,
    count: AtomicUsize,
}

/// An envelope that waits for the app's acknowledgement.
struct UnackedEnvelope {
    app: String,
    id: String,
    body: Value,
    acknowledged: bool,
}

/// A command for open sockets.
#[derive(Clone, Debug)]
enum SocketOrder {
    /// Close without a message.
    Drop,
    /// Stay open, but send and process nothing more.
    Hang,
    /// Announce that the socket is going to be closed.
    Leave(&'static str),
    /// Send this envelope to its app, acknowledged or not.
    Send(String),
}

impl SlackEmulator {
    /// Listens on a free loopback port and shows whatever arrives.
    pub fn start() -> Self {
        let state = Arc::new(SlackState {
            board: MessageBoard::default(),
            files: Mutex::default(),
            envelopes: Mutex::default(),
            orders: broadcast::Sender::new(1024),
            links: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
        });
        let router = Router::new()
            .route("/api/{method}", post(web::handle_call))
            .route("/files/{name}", get(web::serve_file))
            .route("/link/{app}", get(socket_mode::open_socket))
            .with_state(Arc::clone(&state));
        Self { server: router::serve_router(router), state }
    }

    /// Returns the URL for `api_url` in the config.
    pub fn api_url(&self) -> String {
        format!("http://{}/api", self.server.address)
    }

    /// Stores a file and returns its URL.
    pub fn add_file(&self, name: &str, content: &[u8]) -> String {
        lock(&self.state.files).insert(name.to_owned(), content.to_owned());
        format!("http://{}/files/{name}", self.server.address)
    }

    /// Delivers an event by socket, now or when the app opens one, and again on every new socket until the app
    /// acknowledges it. Returns the envelope ID.
    pub fn deliver_event(&self, app: &str, event: &Value) -> String {
        self.queue_envelope(app, "events_api", event_callback(event))
    }

    /// Delivers a command by socket in the same way.
    pub fn deliver_command(&self, app: &str, payload: Value) -> String {
        self.queue_envelope(app, "slash_commands", payload)
    }

    /// Presses a button under an app's message as a person. Delivered by socket in the same way.
    pub fn press_button(&self, app: &str, message: &VisibleMessage, user: &str, label: &str) -> String {
        let press = self.button_payload(message, user, label);
        self.queue_envelope(app, "interactive", press)
    }

    /// Returns Slack's payload for a pressed button.
    pub fn button_payload(&self, message: &VisibleMessage, user: &str, label: &str) -> Value {
        let value = self.state.board.button_value(message, label);
        let mut under = json!({ "type": "message", "ts": message.id, "text": message.text });
        if let Some(thread) = &message.thread {
            under["thread_ts"] = json!(thread);
        }
        json!({
            "type": "block_actions", "team": { "id": "T1" }, "user": { "id": user, "username": "ann" },
            "channel": { "id": message.chat }, "message": under, "trigger_id": format!("press.{}", self.state.next()),
            "actions": [{ "type": "button", "action_id": "button-0", "value": value }],
        })
    }

    fn queue_envelope(&self, app: &str, kind: &str, payload: Value) -> String {
        let id = format!("e-{}", self.state.next());
        let body =
            json!({ "envelope_id": id, "type": kind, "payload": payload, "accepts_response_payload": false });
        lock(&self.state.envelopes).push(UnackedEnvelope {
            app: app.to_owned(),
            id: id.clone(),
            body,
            acknowledged: false,
        });
        self.redeliver(&id);
        id
    }

    /// Delivers an envelope again, as Slack does when it is not sure.
    pub fn redeliver(&self, envelope: &str) {
        let _ = self.state.orders.send(SocketOrder::Send(envelope.to_owned()));
    }

    /// Closes every open socket without a message.
    pub fn drop_sockets(&self) {
        let _ = self.state.orders.send(SocketOrder::Drop);
    }

    /// Makes every open socket unresponsive.
    pub fn hang_sockets(&self) {
        let _ = self.state.orders.send(SocketOrder::Hang);
    }

    /// Announces to every open socket that it is going to be closed.
    pub fn refresh_sockets(&self) {
        let _ = self.state.orders.send(SocketOrder::Leave("refresh_requested"));
    }

    /// Returns the number of sockets opened so far.
    pub fn socket_count(&self) -> usize {
        self.state.links.load(Ordering::SeqCst)
    }

    /// Returns the number of acknowledged envelopes.
    pub fn acknowledged_count(&self) -> usize {
        lock(&self.state.envelopes).iter().filter(|one| one.acknowledged).count()
    }
}

impl EmulatorState for SlackState {
    fn board(&self) -> &MessageBoard {
        &self.board
    }
}

impl SlackState {
    fn next(&self) -> usize {
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }
}

fn event_callback(event: &Value) -> Value {
    json!({ "type": "event_callback", "team_id": "T1", "event": event })
}

/// Builds a signed request of the Events API. `at` is in seconds since 1970.
pub fn event_call(secret: &str, event: &Value, at: i64) -> WebhookRequest {
    signed_call(secret, "application/json", &event_callback(event).to_string(), at)
}

/// Builds a signed request for a pressed button.
pub fn press_call(secret: &str, press: &Value, at: i64) -> WebhookRequest {
    let escaped: String = press.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect();
    signed_call(secret, "application/x-www-form-urlencoded", &format!("payload={escaped}"), at)
}

/// Builds any signed request of Slack.
pub fn signed_call(secret: &str, media_type: &str, body: &str, at: i64) -> WebhookRequest {
    let signature = signature::sign(secret, format!("v0:{at}:{body}").as_bytes()).replace("sha256=", "v0=");
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    WebhookRequest {
        method: "POST".to_owned(),
        query: String::new(),
        headers: vec![
            header("content-type", media_type),
            header("x-slack-request-timestamp", &at.to_string()),
            header("x-slack-signature", &signature),
        ],
        body: body.as_bytes().to_vec(),
    }
}
