//! A WhatsApp Cloud API emulator, and the webhook requests that Meta posts. Numbers are identified by ID; the token
//! of a number is `EAA-<id>`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, Response};
use axum::routing::{get, post};
use polyclaw_domain::channel::WebhookRequest;
use serde_json::{Value, json};

use super::board::{self, MessageBoard, apply_outcome, with_retry_after};
pub use super::board::{RecordedCall, VisibleMessage};
use super::emulator::{EmulatorState, PlatformEmulator};
use super::server::ConnectionCut;
use super::state::lock;
use super::{router, signature};

/// Call names: `messages`, including typing indicators, and `conversational_automation`.
pub type WhatsappEmulator = PlatformEmulator<WhatsappState>;

#[derive(Default)]
pub struct WhatsappState {
    board: MessageBoard,
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    count: AtomicUsize,
}

impl WhatsappEmulator {
    /// Listens on a free loopback port and shows whatever arrives.
    pub fn start() -> Self {
        let state = Arc::new(WhatsappState::default());
        let router = Router::new()
            .route("/{id}/{method}", post(handle_call))
            .route("/{id}", get(media_info))
            .route("/media/{id}", get(serve_media))
            .with_state(Arc::clone(&state));
        Self { server: router::serve_router(router), state }
    }

    /// Returns the URL for `api_url` in the config.
    pub fn api_url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Builds the message that a person sends by pressing a button under a bot's message.
    pub fn button_reply(&self, message: &VisibleMessage, id: &str, at: i64, label: &str) -> Value {
        let command = self.state.board.button_value(message, label);
        json!({
            "from": message.chat, "id": id, "timestamp": at.to_string(), "type": "interactive",
            "context": { "from": "1555010", "id": message.id },
            "interactive": { "type": "button_reply", "button_reply": { "id": command, "title": label } },
        })
    }

    pub fn add_file(&self, id: &str, content: &[u8]) {
        lock(&self.state.files).insert(id.to_owned(), content.to_owned());
    }
}

impl EmulatorState for WhatsappState {
    fn board(&self) -> &MessageBoard {
        &self.board
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    headers.get("authorization")?.to_str().ok()?.strip_prefix("Bearer ")
}

fn error_response(status: u16, code: u32) -> Response<Body> {
    board::json_response(status, &json!({ "error": { "code": code, "message": "no" } }))
}

async fn handle_call(
    Shared(state): Shared<Arc<WhatsappState>>,
    Path((id, method)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response<Body>, ConnectionCut> {
    let Some(token) = bearer_token(&headers).filter(|token| *token == format!("EAA-{id}")) else {
        return Ok(error_response(401, 190));
    };
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let called = RecordedCall { bot: token.to_owned(), method: method.clone(), body: body.clone() };
    let outcome = state.board.record_call(called);
    let perform = || match method.as_str() {
        "messages" if body["status"] == "read" => board::json_response(200, &json!({ "success": true })),
        "messages" => show_message(&state, token, &body),
        "conversational_automation" if body["commands"].as_array().is_some_and(|all| all.len() <= 30) => {
            board::json_response(200, &json!({ "success": true }))
        }
        _ => error_response(400, 100),
    };
    apply_outcome(outcome, perform, |status, seconds| {
        with_retry_after(board::json_response(status, &Value::Null), seconds)
    })
    .await
}

/// Shows a message. Special recipients get an error: `130429` a rate limit, `131047` a closed 24-hour window.
fn show_message(state: &WhatsappState, token: &str, body: &Value) -> Response<Body> {
    let Some((text, buttons)) = text_and_buttons(body) else { return error_response(400, 100) };
    let Some(chat) = body["to"].as_str() else { return error_response(400, 100) };
    let is_group = body["recipient_type"] == "group";
    let is_number = chat.bytes().all(|byte| byte.is_ascii_digit());
    match chat {
        "130429" | "131047" => return error_response(400, chat.parse().unwrap_or_default()),
        _ if is_group == is_number
            || text.chars().count() > 4096
            || body["messaging_product"] != "whatsapp" =>
        {
            return error_response(400, 100);
        }
        _ => {}
    }
    let id = format!("wamid.out{}", state.count.fetch_add(1, Ordering::Relaxed) + 1);
    let answer =
        board::json_response(200, &json!({ "messaging_product": "whatsapp", "messages": [{ "id": id }] }));
    state.board.set_buttons(chat, &id, buttons);
    let (bot, chat, text) = (token.to_owned(), chat.to_owned(), text.to_owned());
    state.board.show_message(VisibleMessage { bot, chat, thread: None, id, text });
    answer
}

/// Returns the text of a message and its buttons, if any. Meta allows buttons only for individual recipients.
fn text_and_buttons(body: &Value) -> Option<(&str, Vec<(String, String)>)> {
    if body["type"] == "text" {
        return Some((body["text"]["body"].as_str()?, Vec::new()));
    }
    let asked = Some(&body["interactive"]).filter(|asked| asked["type"] == "button")?;
    let text = asked["body"]["text"].as_str().filter(|text| (1..=1024).contains(&text.chars().count()))?;
    let button = |button: &Value| {
        let title =
            button["reply"]["title"].as_str().filter(|title| (1..=20).contains(&title.chars().count()))?;
        Some((title.to_owned(), button["reply"]["id"].as_str().filter(|id| id.len() <= 256)?.to_owned()))
    };
    let buttons: Option<Vec<_>> = asked["action"]["buttons"].as_array()?.iter().map(button).collect();
    buttons
        .filter(|all| (1..=3).contains(&all.len()) && body["recipient_type"] == "individual")
        .map(|all| (text, all))
}

async fn media_info(
    Shared(state): Shared<Arc<WhatsappState>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response<Body> {
    let host = headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or_default();
    match lock(&state.files).contains_key(&id) && bearer_token(&headers).is_some() {
        true => {
            board::json_response(200, &json!({ "url": format!("http://{host}/media/{id}"), "file_size": 10 }))
        }
        false => error_response(404, 100),
    }
}

async fn serve_media(
    Shared(state): Shared<Arc<WhatsappState>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response<Body> {
    let content = lock(&state.files).get(&id).cloned();
    match (bearer_token(&headers), content) {
        (Some(_), Some(content)) => Response::new(Body::from(content)),
        _ => error_response(404, 100),
    }
}

/// Builds the signed request that Meta posts for messages to a number.
pub fn message_call(secret: &str, number: &str, messages: &[Value]) -> WebhookRequest {
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

/// Builds any signed request of Meta.
pub fn signed_call(secret: &str, body: &str) -> WebhookRequest {
    let signature = signature::sign(secret, body.as_bytes());
    WebhookRequest {
        method: "POST".to_owned(),
        query: String::new(),
        headers: vec![("x-hub-signature-256".to_owned(), signature)],
        body: body.as_bytes().to_vec(),
    }
}
