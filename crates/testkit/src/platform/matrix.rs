//! A small Matrix homeserver: users, rooms, an event stream, and the parts of the client-server API that a bot needs.
//! The password of `@ann:hs` is `pw-ann`; logging in returns tokens.

mod rest;
mod sync;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::{get, post, put};
use serde_json::{Value, json};

use super::board::MessageBoard;
pub use super::board::{RecordedCall, VisibleMessage};
use super::emulator::{EmulatorState, PlatformEmulator};
use super::router;
use super::state::lock;

/// Call kinds: `send`, `sync`, `messages` for history, `members`, and `store` and `stored` for a client's position.
/// `Status(200)` is an empty response.
pub type MatrixEmulator = PlatformEmulator<MatrixState>;

pub struct MatrixState {
    board: MessageBoard,
    world: Mutex<HomeserverData>,
    /// Number of times a client stored a position.
    stored: AtomicUsize,
}

#[derive(Default)]
struct HomeserverData {
    /// The user and device of each token.
    tokens: BTreeMap<String, (String, String)>,
    logins: usize,
    /// Every event with its room.
    stream: Vec<(String, Value)>,
    /// Membership of users in rooms: `join`, `invite` or `leave`.
    members: BTreeMap<(String, String), String>,
    account_data: BTreeMap<(String, String), Value>,
    sent: BTreeMap<(String, String, String), String>,
    files: BTreeMap<String, Vec<u8>>,
    typing: BTreeSet<(String, String)>,
    sealed: BTreeSet<String>,
    /// Maximum number of events of a room in one response.
    page: usize,
}

impl MatrixEmulator {
    pub fn start() -> Self {
        let state = Arc::new(MatrixState {
            board: MessageBoard::default(),
            world: Mutex::new(HomeserverData { page: usize::MAX, ..HomeserverData::default() }),
            stored: AtomicUsize::new(0),
        });
        Self { server: router::serve_router(routes().with_state(Arc::clone(&state))), state }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Creates a room with these users.
    pub fn add_room(&self, room: &str, people: &[&str]) {
        for user in people {
            self.state.set_member(
                room,
                user,
                user,
                &json!({ "membership": "join", "displayname": name(user) }),
            );
        }
    }

    pub fn invite_user(&self, room: &str, inviter: &str, user: &str, is_direct: bool) {
        let content = json!({ "membership": "invite", "is_direct": is_direct });
        self.state.set_member(room, inviter, user, &content);
    }

    /// Encrypts the room, which invitations also state.
    pub fn encrypt_room(&self, room: &str) {
        lock(&self.state.world).sealed.insert(room.to_owned());
    }

    /// Returns `join`, `invite` or `leave`.
    pub fn membership(&self, room: &str, user: &str) -> Option<String> {
        lock(&self.state.world).members.get(&(room.to_owned(), user.to_owned())).cloned()
    }

    /// Sends a text as a user. Returns the event ID.
    pub fn send_text(&self, room: &str, sender: &str, text: &str) -> String {
        self.emit_event(room, sender, "m.room.message", json!({ "msgtype": "m.text", "body": text }))
    }

    /// Adds any event to a room.
    pub fn emit_event(&self, room: &str, sender: &str, kind: &str, content: Value) -> String {
        self.state.append_event(room, json!({ "type": kind, "sender": sender, "content": content }))
    }

    /// Stores a file and returns its URL.
    pub fn add_file(&self, id: &str, content: &[u8]) -> String {
        lock(&self.state.world).files.insert(id.to_owned(), content.to_owned());
        format!("mxc://hs/{id}")
    }

    /// Limits the number of events of a room in one response.
    pub fn limit_page(&self, events: usize) {
        lock(&self.state.world).page = events;
    }

    /// Invalidates every token.
    pub fn forget_tokens(&self) {
        lock(&self.state.world).tokens.clear();
    }

    pub fn login_count(&self) -> usize {
        lock(&self.state.world).logins
    }

    /// Returns the rooms and the users who are typing in them.
    pub fn typing_users(&self) -> Vec<(String, String)> {
        lock(&self.state.world).typing.iter().cloned().collect()
    }

    /// Returns how often clients stored a position.
    pub fn stored_count(&self) -> usize {
        self.state.stored.load(Ordering::SeqCst)
    }
}

impl EmulatorState for MatrixState {
    fn board(&self) -> &MessageBoard {
        &self.board
    }
}

impl MatrixState {
    /// Appends an event with a new ID to the stream.
    fn append_event(&self, room: &str, mut event: Value) -> String {
        let mut world = lock(&self.world);
        let id = format!("$event{}", world.stream.len() + 1);
        event["event_id"] = json!(id);
        world.stream.push((room.to_owned(), event));
        drop(world);
        self.board.notify_change();
        id
    }

    fn set_member(&self, room: &str, sender: &str, user: &str, content: &Value) {
        let membership = content["membership"].as_str().unwrap_or_default().to_owned();
        lock(&self.world).members.insert((room.to_owned(), user.to_owned()), membership);
        let event =
            json!({ "type": "m.room.member", "sender": sender, "state_key": user, "content": content });
        self.append_event(room, event);
    }
}

/// Returns a user's name: `ann` for `@ann:hs`.
fn name(user: &str) -> &str {
    user.trim_start_matches('@').split(':').next().unwrap_or_default()
}

fn routes() -> Router<Arc<MatrixState>> {
    Router::new()
        .route("/_matrix/client/v3/login", post(rest::login))
        .route("/_matrix/client/v3/account/whoami", get(rest::whoami))
        .route("/_matrix/client/v3/sync", get(sync::sync))
        .route(
            "/_matrix/client/v3/user/{user}/account_data/{kind}",
            get(rest::account_data).put(rest::store_account_data),
        )
        .route("/_matrix/client/v3/rooms/{room}/send/m.room.message/{key}", put(rest::send))
        .route("/_matrix/client/v3/rooms/{room}/typing/{user}", put(rest::typing))
        .route("/_matrix/client/v3/rooms/{room}/joined_members", get(rest::members))
        .route("/_matrix/client/v3/rooms/{room}/messages", get(sync::messages))
        .route("/_matrix/client/v3/rooms/{room}/event/{event}", get(rest::event))
        .route("/_matrix/client/v3/rooms/{room}/{action}", post(rest::change_membership))
        .route("/_matrix/client/v1/media/download/{server}/{id}", get(rest::media))
}
