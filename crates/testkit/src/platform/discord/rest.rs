//! The REST calls, as Discord answers them.

use axum::body::Body;
use axum::http::Response;
use serde_json::{Value, json};

use super::state::{DiscordState, member_json};
use crate::platform::board::{EditOutcome, VisibleMessage, json_response as answer};

const MAX_MESSAGE_CHARS: usize = 2000;
const MAX_NONCE_LEN: usize = 25;

pub(super) struct RestCall<'a> {
    pub token: &'a str,
    pub bot: &'a str,
    pub name: String,
    pub segments: &'a [&'a str],
    pub query: &'a str,
    pub body: Value,
}

/// Returns the call's name: its method and the last path segment that is no ID, such as `POST messages`.
pub(super) fn name(method: &str, segments: &[&str]) -> String {
    const WORDS: [&str; 9] = [
        "messages",
        "typing",
        "commands",
        "callback",
        "members",
        "bot",
        "channels",
        "applications",
        "@original",
    ];
    let word = segments.iter().rev().find(|segment| WORDS.contains(segment));
    format!("{method} {}", word.unwrap_or(&"?"))
}

pub(super) fn perform_call(state: &DiscordState, call: &RestCall<'_>) -> Response<Body> {
    match (call.name.as_str(), call.segments) {
        ("GET bot", _) => answer(200, &json!({ "url": state.gateway_url().trim_end_matches('/') })),
        ("GET applications", _) => answer(200, &json!({ "id": call.bot })),
        ("PUT commands", _) => answer(200, &call.body),
        ("POST callback" | "POST typing", _) => answer(204, &Value::Null),
        ("PATCH @original", _) => answer(200, &json!({})),
        ("GET members", [.., person]) => answer(200, &member_json(person)),
        ("GET channels", [.., channel]) => {
            state.find_channel(channel).map_or_else(not_found, |found| answer(200, &found))
        }
        ("GET messages", ["channels", channel, ..]) => {
            let (after, limit) = (query_number(call.query, "after"), query_number(call.query, "limit"));
            let limit = usize::try_from(limit).unwrap_or(50).clamp(1, 100);
            answer(200, &state.messages_after(channel, after, limit).into())
        }
        ("POST messages", ["channels", channel, ..]) => create_message(state, call, channel),
        ("PATCH messages", ["channels", channel, "messages", id]) => edit_message(state, call, channel, id),
        _ => not_found(),
    }
}

fn create_message(state: &DiscordState, call: &RestCall<'_>, channel: &str) -> Response<Body> {
    let text = match message_content(&call.body) {
        Ok(text) => text,
        Err(why) => return bad_request(why),
    };
    let nonce = call.body["nonce"].as_str().unwrap_or_default();
    if nonce.len() > MAX_NONCE_LEN {
        return bad_request("the nonce is too long");
    }
    let is_enforced = call.body["enforce_nonce"] == true && !nonce.is_empty();
    let id = if is_enforced { state.claim_nonce(call.token, channel, nonce) } else { Ok(state.next_id()) };
    match id {
        Ok(id) => {
            let (bot, chat) = (call.token.to_owned(), channel.to_owned());
            match parse_buttons(&call.body["components"]) {
                Some(buttons) => state.board.set_buttons(&chat, &id, buttons),
                None => return bad_request("Invalid Form Body"),
            }
            state.board.show_message(VisibleMessage { bot, chat, thread: None, id: id.clone(), text });
            answer(200, &json!({ "id": id, "channel_id": channel }))
        }
        Err(known) => answer(200, &json!({ "id": known, "channel_id": channel })),
    }
}

/// Parses the buttons of a message, which are in rows, into labels and values. Returns `None` if Discord would reject
/// them.
fn parse_buttons(rows: &Value) -> Option<Vec<(String, String)>> {
    let mut buttons = Vec::new();
    for row in rows.as_array().into_iter().flatten() {
        for button in row["components"].as_array().filter(|_| row["type"] == 1)? {
            let id = button["custom_id"].as_str().filter(|id| (1..=100).contains(&id.chars().count()))?;
            let label =
                button["label"].as_str().filter(|_| button["type"] == 2 && button["style"].is_u64())?;
            buttons.push((label.to_owned(), id.to_owned()));
        }
    }
    Some(buttons)
}

fn edit_message(state: &DiscordState, call: &RestCall<'_>, channel: &str, id: &str) -> Response<Body> {
    match message_content(&call.body) {
        Ok(text) => match state.board.edit_message(channel, id, &text) {
            EditOutcome::Changed | EditOutcome::Same => {
                answer(200, &json!({ "id": id, "channel_id": channel }))
            }
            EditOutcome::Missing => not_found(),
        },
        Err(why) => bad_request(why),
    }
}

/// Returns the content. Discord trims it.
fn message_content(body: &Value) -> Result<String, &'static str> {
    let text = body["content"].as_str().unwrap_or_default().trim();
    if text.is_empty() {
        return Err("Cannot send an empty message");
    }
    if text.chars().count() > MAX_MESSAGE_CHARS {
        return Err("Must be 2000 or fewer in length.");
    }
    Ok(text.to_owned())
}

fn query_number(query: &str, name: &str) -> u64 {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(key, _)| *key == name).find_map(|(_, value)| value.parse().ok()).unwrap_or(0)
}

fn not_found() -> Response<Body> {
    answer(404, &json!({ "message": "Unknown", "code": 10003 }))
}

fn bad_request(message: &str) -> Response<Body> {
    answer(400, &json!({ "message": message, "code": 50035 }))
}
