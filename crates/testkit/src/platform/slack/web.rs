//! The Web API. Errors have status 200, as on Slack.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, Response};
use serde_json::{Value, json};

use super::SlackState;
use crate::platform::board::{
    self, EditOutcome, RecordedCall, VisibleMessage, apply_outcome, with_retry_after,
};
use crate::platform::server::ConnectionCut;
use crate::platform::state::lock;

/// Returns the request's token.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    headers.get("authorization")?.to_str().ok()?.strip_prefix("Bearer ")
}

fn ok_response(body: &Value) -> Response<Body> {
    board::json_response(200, body)
}

fn error_response(error: &str) -> Response<Body> {
    ok_response(&json!({ "ok": false, "error": error }))
}

/// Handles a call. Opening a socket needs an app token, everything else a bot token.
pub(super) async fn handle_call(
    Shared(state): Shared<Arc<SlackState>>,
    Path(method): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response<Body>, ConnectionCut> {
    let kind = if method == "apps.connections.open" { "xapp-" } else { "xoxb-" };
    let Some(token) = bearer_token(&headers).filter(|token| token.starts_with(kind)) else {
        return Ok(error_response("invalid_auth"));
    };
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let called = RecordedCall { bot: token.to_owned(), method: method.clone(), body: body.clone() };
    let outcome = state.board.record_call(called);
    let perform = || match method.as_str() {
        "auth.test" => ok_response(
            &json!({ "ok": true, "user_id": "UBOT", "user": "polyclaw", "bot_id": "BBOT", "team_id": "T1" }),
        ),
        "apps.connections.open" => {
            let host = headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or_default();
            ok_response(
                &json!({ "ok": true, "url": format!("ws://{host}/link/{}", token.trim_start_matches(kind)) }),
            )
        }
        "chat.postMessage" => show_message(&state, token, &body),
        "chat.update" => update_message(&state, &body),
        _ => error_response("unknown_method"),
    };
    let refuse = |status, seconds| {
        with_retry_after(board::json_response(status, &json!({ "ok": false, "error": "scripted" })), seconds)
    };
    apply_outcome(outcome, perform, refuse).await
}

fn show_message(state: &SlackState, token: &str, body: &Value) -> Response<Body> {
    let field = |name: &str| body[name].as_str().map(str::to_owned);
    let (Some(chat), Some(text)) = (field("channel"), field("text")) else {
        return error_response("invalid_arguments");
    };
    if chat == "CGONE" {
        return error_response("channel_not_found");
    }
    if text.trim().is_empty() {
        return error_response("no_text");
    }
    let Some(buttons) = parse_buttons(&body["blocks"]) else { return error_response("invalid_blocks") };
    let ts = format!("9.{}", state.next());
    state.board.set_buttons(&chat, &ts, buttons);
    let answer = ok_response(&json!({ "ok": true, "channel": chat, "ts": ts }));
    state.board.show_message(VisibleMessage {
        bot: token.to_owned(),
        chat,
        thread: field("thread_ts"),
        id: ts,
        text,
    });
    answer
}

/// Returns the buttons of a message, or `None` if Slack would reject its blocks.
fn parse_buttons(blocks: &Value) -> Option<Vec<(String, String)>> {
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

fn update_message(state: &SlackState, body: &Value) -> Response<Body> {
    let field = |name: &str| body[name].as_str().unwrap_or_default();
    match state.board.edit_message(field("channel"), field("ts"), field("text")) {
        EditOutcome::Missing => error_response("message_not_found"),
        EditOutcome::Changed | EditOutcome::Same => {
            ok_response(&json!({ "ok": true, "channel": body["channel"], "ts": body["ts"] }))
        }
    }
}

pub(super) async fn serve_file(
    Shared(state): Shared<Arc<SlackState>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response<Body> {
    let content = lock(&state.files).get(&name).cloned().filter(|_| bearer_token(&headers).is_some());
    content
        .map_or_else(|| board::json_response(404, &Value::Null), |content| Response::new(Body::from(content)))
}
