//! Slack on the wire: its Web API, its sockets, and what it posts to who is called by it.
//!
//! An app is known by its name: its tokens are `xoxb-<name>` and `xapp-<name>`, its user is `UBOT`, its team `T1`.

mod link;
mod web;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::{get, post};
use polyclaw_domain::channel::Call;
use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};

use super::wire::{Board, Said, Script, Server, assert_reached, lock};
use super::{Outcome, signature};

/// Runs until dropped.
pub struct Slack {
    server: Server,
    state: Arc<State>,
}

struct State {
    address: SocketAddr,
    board: Board,
    posts: Script,
    edits: Script,
    /// How many more sockets are refused.
    refusals: AtomicU32,
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    envelopes: Mutex<Vec<Envelope>>,
    orders: broadcast::Sender<Order>,
    acknowledged: watch::Sender<usize>,
    /// Sockets that were opened so far.
    links: watch::Sender<usize>,
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
        let mut made = None;
        let server = Server::start(|address| {
            let state = Arc::new(State::new(address));
            made = Some(Arc::clone(&state));
            Router::new()
                .route("/api/auth.test", post(web::identity))
                .route("/api/apps.connections.open", post(web::connection))
                .route("/api/chat.postMessage", post(web::message))
                .route("/api/chat.update", post(web::update))
                .route("/files/{name}", get(web::file))
                .route("/link/{app}", get(link::open))
                .with_state(state)
        });
        Self { server, state: made.expect("the router was made") }
    }

    /// What the config calls `api_url`.
    pub fn api_url(&self) -> String {
        format!("{}/api", self.server.url())
    }

    /// Keeps a file and says where it is.
    pub fn keep_file(&self, name: &str, content: &[u8]) -> String {
        lock(&self.state.files).insert(name.to_owned(), content.to_owned());
        format!("{}/files/{name}", self.server.url())
    }

    /// What happens to the next message.
    pub fn push(&self, outcome: Outcome) {
        self.state.posts.push(outcome);
    }

    /// What happens to the next change of a message.
    pub fn push_edit(&self, outcome: Outcome) {
        self.state.edits.push(outcome);
    }

    /// The next sockets are refused.
    pub fn refuse_links(&self, count: u32) {
        self.state.refusals.store(count, Ordering::SeqCst);
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

    pub async fn wait_for_links(&self, count: usize) {
        assert_reached(&self.state.links, count, "sockets").await;
    }

    /// Waits until this many envelopes were acknowledged, each counted once.
    pub async fn wait_for_acknowledged(&self, count: usize) {
        assert_reached(&self.state.acknowledged, count, "acknowledged envelopes").await;
    }

    pub fn acknowledged(&self) -> usize {
        *self.state.acknowledged.borrow()
    }

    pub fn said(&self) -> Vec<Said> {
        self.state.board.said()
    }

    /// What people see, which is then wiped.
    pub fn wipe(&self) -> Vec<Said> {
        self.state.board.wipe()
    }

    /// Waits until people see this many messages.
    pub async fn wait_for(&self, count: usize) -> Vec<Said> {
        self.state.board.wait_for(count).await
    }
}

impl State {
    fn new(address: SocketAddr) -> Self {
        Self {
            address,
            board: Board::default(),
            posts: Script::default(),
            edits: Script::default(),
            refusals: AtomicU32::new(0),
            files: Mutex::default(),
            envelopes: Mutex::default(),
            orders: broadcast::Sender::new(1024),
            acknowledged: watch::Sender::new(0),
            links: watch::Sender::new(0),
            count: AtomicUsize::new(0),
        }
    }

    fn next(&self) -> usize {
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }
}

fn callback(event: &Value) -> Value {
    json!({ "type": "event_callback", "team_id": "T1", "event": event })
}

/// A request of the Events API, signed at this time (in seconds since 1970).
pub fn event_call(secret: &str, event: &Value, at: i64) -> Call {
    signed_call(secret, "application/json", &callback(event).to_string(), at)
}

/// Any request of Slack, signed.
pub fn signed_call(secret: &str, media_type: &str, body: &str, at: i64) -> Call {
    let signature = signature::sign(secret, format!("v0:{at}:{body}").as_bytes()).replace("sha256=", "v0=");
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Call {
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
