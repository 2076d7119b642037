//! Slack on the wire: its Web API, its sockets, and what it posts to who is called by it.
//!
//! An app is known by its name: its tokens are `xoxb-<name>` and `xapp-<name>`, its user is `UBOT`, its team `T1`.

mod link;
mod web;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::{get, post};
use polyclaw_domain::channel::WebhookRequest;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::board::Board;
pub use super::board::{Called, Shown};
use super::state::lock;
use super::wire::{Kept, Wire};
use super::{router, signature};

/// Its calls are the names of methods.
pub type Slack = Wire<State>;

pub struct State {
    board: Board,
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    envelopes: Mutex<Vec<Envelope>>,
    orders: broadcast::Sender<Order>,
    /// Sockets that were opened so far.
    links: AtomicUsize,
    count: AtomicUsize,
}

/// Something that waits until an app says it has it.
struct Envelope {
    app: String,
    id: String,
    body: Value,
    acknowledged: bool,
}

/// What open sockets are told to do.
#[derive(Clone, Debug)]
enum Order {
    /// Close without a word.
    Drop,
    /// Stay open, and neither say nor hear anything more.
    Hang,
    /// Say that the socket is going to be closed.
    Leave(&'static str),
    /// Send what is in this envelope to its app, acknowledged or not.
    Send(String),
}

impl Slack {
    /// Listens on a free loopback port and shows whatever arrives.
    pub fn start() -> Self {
        let state = Arc::new(State {
            board: Board::default(),
            files: Mutex::default(),
            envelopes: Mutex::default(),
            orders: broadcast::Sender::new(1024),
            links: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
        });
        let router = Router::new()
            .route("/api/{method}", post(web::call))
            .route("/files/{name}", get(web::file))
            .route("/link/{app}", get(link::open))
            .with_state(Arc::clone(&state));
        Self { server: router::serve(router), state }
    }

    /// What the config calls `api_url`.
    pub fn api_url(&self) -> String {
        format!("http://{}/api", self.server.address)
    }

    /// Keeps a file and says where it is.
    pub fn keep_file(&self, name: &str, content: &[u8]) -> String {
        lock(&self.state.files).insert(name.to_owned(), content.to_owned());
        format!("http://{}/files/{name}", self.server.address)
    }

    /// Delivers an event by socket, now or when the app opens one, and again on every new socket until the app
    /// acknowledges it. Returns the envelope's id.
    pub fn deliver(&self, app: &str, event: &Value) -> String {
        self.envelop(app, "events_api", callback(event))
    }

    /// Delivers a command by socket, in the same way.
    pub fn command(&self, app: &str, payload: Value) -> String {
        self.envelop(app, "slash_commands", payload)
    }

    /// A person presses a button under a message of an app: it is told by socket, in the same way.
    pub fn press(&self, app: &str, message: &Shown, user: &str, label: &str) -> String {
        let press = self.pressed(message, user, label);
        self.envelop(app, "interactive", press)
    }

    /// What Slack says of a pressed button.
    pub fn pressed(&self, message: &Shown, user: &str, label: &str) -> Value {
        let value = self.state.board.pressed(message, label);
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

    fn envelop(&self, app: &str, kind: &str, payload: Value) -> String {
        let id = format!("e-{}", self.state.next());
        let body =
            json!({ "envelope_id": id, "type": kind, "payload": payload, "accepts_response_payload": false });
        lock(&self.state.envelopes).push(Envelope {
            app: app.to_owned(),
            id: id.clone(),
            body,
            acknowledged: false,
        });
        self.redeliver(&id);
        id
    }

    /// Delivers it once more, as Slack does when it is not sure.
    pub fn redeliver(&self, envelope: &str) {
        let _ = self.state.orders.send(Order::Send(envelope.to_owned()));
    }

    /// Every open socket closes without a word.
    pub fn drop_links(&self) {
        let _ = self.state.orders.send(Order::Drop);
    }

    /// Every open socket falls silent.
    pub fn hang_links(&self) {
        let _ = self.state.orders.send(Order::Hang);
    }

    /// Every open socket is told that it is going to be closed.
    pub fn refresh_links(&self) {
        let _ = self.state.orders.send(Order::Leave("refresh_requested"));
    }

    /// How many sockets were opened so far.
    pub fn links(&self) -> usize {
        self.state.links.load(Ordering::SeqCst)
    }

    /// How many envelopes were acknowledged.
    pub fn acknowledged(&self) -> usize {
        lock(&self.state.envelopes).iter().filter(|one| one.acknowledged).count()
    }
}

impl Kept for State {
    fn board(&self) -> &Board {
        &self.board
    }
}

impl State {
    fn next(&self) -> usize {
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }
}

fn callback(event: &Value) -> Value {
    json!({ "type": "event_callback", "team_id": "T1", "event": event })
}

/// A request of the Events API, signed at this time (in seconds since 1970).
pub fn event_call(secret: &str, event: &Value, at: i64) -> WebhookRequest {
    signed_call(secret, "application/json", &callback(event).to_string(), at)
}

/// A request that tells of a pressed button, signed.
pub fn press_call(secret: &str, press: &Value, at: i64) -> WebhookRequest {
    let escaped: String = press.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect();
    signed_call(secret, "application/x-www-form-urlencoded", &format!("payload={escaped}"), at)
}

/// Any request of Slack, signed.
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
