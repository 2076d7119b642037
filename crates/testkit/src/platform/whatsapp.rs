//! The Cloud API on the wire, and what Meta posts to who is called by it. Numbers are known by their id; the token
//! of a number is `EAA-<id>`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, Response};
use axum::routing::{get, post};
use polyclaw_domain::channel::Call;
use serde_json::{Value, json};

use super::wire::{self, Board, Said, Script, Server, lock};
use super::{Outcome, signature};

/// Runs until dropped.
pub struct Whatsapp {
    server: Server,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    board: Board,
    script: Script,
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    /// The messages that were marked as read, with the sign that an answer is being written.
    typing: Mutex<Vec<String>>,
    /// What is offered, by number.
    menus: Mutex<BTreeMap<String, Value>>,
    count: AtomicUsize,
}

impl Whatsapp {
    /// Listens on a free loopback port and shows whatever arrives.
    pub fn start() -> Self {
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let server = Server::start(move |address| {
            let about = move |Shared(state): Shared<Arc<State>>,
                              Path(id): Path<String>,
                              headers: HeaderMap| async move {
                let known = lock(&state.files).contains_key(&id) && token(&headers).is_some();
                match known {
                    true => {
                        wire::json(&json!({ "url": format!("http://{address}/media/{id}"), "file_size": 10 }))
                    }
                    false => refused(404, 100),
                }
            };
            Router::new()
                .route("/{id}/messages", post(message))
                .route("/{id}/conversational_automation", post(menu))
                .route("/{id}", get(about))
                .route("/media/{id}", get(media))
                .with_state(shared)
        });
        Self { server, state }
    }

    /// What the config calls `api_url`.
    pub fn api_url(&self) -> String {
        self.server.url()
    }

    pub fn keep_file(&self, id: &str, content: &[u8]) {
        lock(&self.state.files).insert(id.to_owned(), content.to_owned());
    }

    /// What happens to the next message.
    pub fn push(&self, outcome: Outcome) {
        self.state.script.push(outcome);
    }

    pub fn said(&self) -> Vec<Said> {
        self.state.board.said()
    }

    /// What people see, which is then wiped.
    pub fn wipe(&self) -> Vec<Said> {
        self.state.board.wipe()
    }

    /// The commands that a number offers.
    pub fn menu(&self, number: &str) -> Option<Value> {
        lock(&self.state.menus).get(number).cloned()
    }

    /// The messages under which people saw that an answer is being written.
    pub fn typing(&self) -> Vec<String> {
        lock(&self.state.typing).clone()
    }
}

fn token(headers: &HeaderMap) -> Option<&str> {
    headers.get("authorization")?.to_str().ok()?.strip_prefix("Bearer EAA-")
}

fn refused(status: u16, code: u32) -> Response<Body> {
    wire::status(status, &json!({ "error": { "code": code, "message": "no" } }))
}

/// `to` chooses what Meta thinks of it: `130429` is told to slow down, `131047` has been silent for a day.
async fn message(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    if token(&headers) != Some(&id) || body["messaging_product"] != "whatsapp" {
        return refused(401, 190);
    }
    if body["status"] == "read" && body["typing_indicator"]["type"] == "text" {
        lock(&state.typing).push(body["message_id"].as_str().unwrap_or_default().to_owned());
        return wire::json(&json!({ "success": true }));
    }
    let is_group = body["recipient_type"] == "group";
    let (Some(peer), Some(text)) = (body["to"].as_str(), body["text"]["body"].as_str()) else {
        return refused(400, 100);
    };
    match peer {
        "130429" | "131047" => return refused(400, peer.parse().unwrap_or_default()),
        _ if is_group == peer.bytes().all(|byte| byte.is_ascii_digit()) => return refused(400, 100),
        _ => {}
    }
    let wamid = format!("wamid.out{}", state.count.fetch_add(1, Ordering::Relaxed) + 1);
    let said =
        Said { account: id, peer: peer.to_owned(), thread: None, text: text.to_owned(), id: wamid.clone() };
    let show = || {
        state.board.show(said);
        wire::json(&json!({ "messaging_product": "whatsapp", "messages": [{ "id": wamid }] }))
    };
    state.script.play(show).await
}

async fn menu(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let commands = body["commands"].as_array().map_or(usize::MAX, Vec::len);
    if token(&headers) != Some(&id) || commands > 30 {
        return refused(400, 100);
    }
    lock(&state.menus).insert(id, body["commands"].clone());
    wire::json(&json!({ "success": true }))
}

async fn media(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response<Body> {
    let content = lock(&state.files).get(&id).cloned();
    match (token(&headers), content) {
        (Some(_), Some(content)) => Response::new(Body::from(content)),
        _ => refused(404, 100),
    }
}

/// What Meta posts when these messages were written to a number, signed.
pub fn message_call(secret: &str, number: &str, messages: &[Value]) -> Call {
    let value = json!({
        "messaging_product": "whatsapp",
        "metadata": { "phone_number_id": number, "display_phone_number": "+1 555 010" },
        "contacts": [{ "wa_id": "49151", "profile": { "name": "Ann" } }],
        "messages": messages,
    });
    let change = json!({ "field": "messages", "value": value });
    let body =
        json!({ "object": "whatsapp_business_account", "entry": [{ "id": "1", "changes": [change] }] });
    signed_call(secret, &body.to_string())
}

/// Any request of Meta, signed.
pub fn signed_call(secret: &str, body: &str) -> Call {
    let signature = signature::sign(secret, body.as_bytes());
    Call {
        method: "POST".to_owned(),
        query: String::new(),
        headers: vec![("x-hub-signature-256".to_owned(), signature)],
        body: body.as_bytes().to_vec(),
    }
}
