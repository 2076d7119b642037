//! The Web API. An error is an answer of status 200, as on Slack.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, Response};
use serde_json::{Value, json};

use super::State;
use crate::platform::board::{self, Called, Edited, Shown, carry_out, with_retry_after};
use crate::platform::server::Cut;
use crate::platform::state::lock;

/// The token that came along.
fn token(headers: &HeaderMap) -> Option<&str> {
    headers.get("authorization")?.to_str().ok()?.strip_prefix("Bearer ")
}

fn ok(body: &Value) -> Response<Body> {
    board::json(200, body)
}

fn refused(error: &str) -> Response<Body> {
    ok(&json!({ "ok": false, "error": error }))
}

/// Only sockets are opened with an app's token, everything else is done with a bot's.
pub(super) async fn call(
    Shared(state): Shared<Arc<State>>,
    Path(method): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response<Body>, Cut> {
    let kind = if method == "apps.connections.open" { "xapp-" } else { "xoxb-" };
    let Some(token) = token(&headers).filter(|token| token.starts_with(kind)) else {
        return Ok(refused("invalid_auth"));
    };
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let called = Called { bot: token.to_owned(), method: method.clone(), body: body.clone() };
    let outcome = state.board.called(called);
    let perform = || match method.as_str() {
        "auth.test" => ok(
            &json!({ "ok": true, "user_id": "UBOT", "user": "polyclaw", "bot_id": "BBOT", "team_id": "T1" }),
        ),
        "apps.connections.open" => {
            let host = headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or_default();
            ok(&json!({ "ok": true, "url": format!("ws://{host}/link/{}", token.trim_start_matches(kind)) }))
        }
        "chat.postMessage" => show(&state, token, &body),
        "chat.update" => update(&state, &body),
        _ => refused("unknown_method"),
    };
    let refuse = |status, seconds| {
        with_retry_after(board::json(status, &json!({ "ok": false, "error": "scripted" })), seconds)
    };
    carry_out(outcome, perform, refuse).await
}

fn show(state: &State, token: &str, body: &Value) -> Response<Body> {
    let field = |name: &str| body[name].as_str().map(str::to_owned);
    let (Some(chat), Some(text)) = (field("channel"), field("text")) else {
        return refused("invalid_arguments");
    };
    if chat == "CGONE" {
        return refused("channel_not_found");
    }
    if text.trim().is_empty() {
        return refused("no_text");
    }
    let Some(buttons) = buttons(&body["blocks"]) else { return refused("invalid_blocks") };
    let ts = format!("9.{}", state.next());
    state.board.offer(&chat, &ts, buttons);
    let answer = ok(&json!({ "ok": true, "channel": chat, "ts": ts }));
    state.board.show(Shown { bot: token.to_owned(), chat, thread: field("thread_ts"), id: ts, text });
    answer
}

/// The buttons of a message; none where Slack would not take its blocks.
fn buttons(blocks: &Value) -> Option<Vec<(String, String)>> {
    let mut buttons = Vec::new();
    for block in blocks.as_array().into_iter().flatten() {
        match block["type"].as_str()? {
            "section" => {
                block["text"]["text"].as_str().filter(|text| (1..=3000).contains(&text.chars().count()))?;
            }
            "actions" => {
                for button in block["elements"].as_array()? {
                    let label = button["text"]["text"].as_str().filter(|_| button["type"] == "button")?;
                    let value = button["value"].as_str().filter(|_| button["action_id"].is_string())?;
                    buttons.push((label.to_owned(), value.to_owned()));
                }
            }
            _ => return None,
        }
    }
    Some(buttons)
}

fn update(state: &State, body: &Value) -> Response<Body> {
    let field = |name: &str| body[name].as_str().unwrap_or_default();
    match state.board.edit(field("channel"), field("ts"), field("text")) {
        Edited::Missing => refused("message_not_found"),
        Edited::Changed | Edited::Same => {
            ok(&json!({ "ok": true, "channel": body["channel"], "ts": body["ts"] }))
        }
    }
}

pub(super) async fn file(
    Shared(state): Shared<Arc<State>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response<Body> {
    let content = lock(&state.files).get(&name).cloned().filter(|_| token(&headers).is_some());
    content.map_or_else(|| board::json(404, &Value::Null), |content| Response::new(Body::from(content)))
}
