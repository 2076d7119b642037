//! The methods, as the Bot API answers them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, Response};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::state::State;
use crate::platform::board::{Called, Edited, Shown, carry_out, json as answer_json};
use crate::platform::server::Cut;

/// The limit on one message, counted in the strictest way there is: UTF-16 units.
const MAX_UNITS: usize = 4096;
/// The limit on what a button sends, in bytes.
const MAX_DATA: usize = 64;

pub(super) async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let body = to_bytes(Body::new(body), usize::MAX).await.map_err(|_| Cut)?;
    if let Some(rest) = path.strip_prefix("/file/bot") {
        return Ok(file(&state, rest));
    }
    let Some((token, method)) = path.strip_prefix("/bot").and_then(|rest| rest.split_once('/')) else {
        return Ok(refusal(404, None));
    };
    let Some(user) = state.user(token) else { return Ok(refusal(401, None)) };
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let called = Called { bot: token.to_owned(), method: method.to_owned(), body: body.clone() };
    let outcome = state.board.called(called);
    if method == "getUpdates" && outcome.shows() {
        wait_for_updates(&state, token, &body).await;
    }
    carry_out(outcome, || perform(&state, token, user, method, &body), refusal).await
}

fn perform(state: &State, token: &str, user: Value, method: &str, body: &Value) -> Response<Body> {
    match method {
        "getMe" => result(user),
        "getUpdates" => {
            let limit = body["limit"].as_u64().and_then(|limit| limit.try_into().ok()).unwrap_or(100);
            result(state.updates(token, offset(body), limit).into())
        }
        "sendMessage" => send(state, token, body),
        "editMessageText" => edit(state, body),
        "sendChatAction" | "setMyCommands" | "answerCallbackQuery" => result(true.into()),
        "getFile" => match body["file_id"].as_str().filter(|id| state.content(id).is_some()) {
            Some(id) => result(json!({ "file_id": id, "file_path": format!("documents/{id}") })),
            None => bad("invalid file_id"),
        },
        _ => refusal(404, None),
    }
}

async fn wait_for_updates(state: &State, token: &str, body: &Value) {
    let seconds = body["timeout"].as_u64().unwrap_or(0);
    let _poll = state.poll(token);
    let mut changes = state.board.watch();
    let some = async {
        while state.updates(token, offset(body), 1).is_empty() && changes.changed().await.is_ok() {}
    };
    let _ = tokio::time::timeout(Duration::from_secs(seconds), some).await;
}

fn offset(body: &Value) -> i64 {
    body["offset"].as_i64().unwrap_or(0)
}

fn send(state: &State, token: &str, body: &Value) -> Response<Body> {
    let text = match text(body) {
        Ok(text) => text,
        Err(why) => return bad(why),
    };
    let (chat, id) = (id_of(&body["chat_id"]), state.next_id());
    let thread = Some(id_of(&body["message_thread_id"])).filter(|thread| thread != "null");
    match keyboard(&body["reply_markup"]) {
        Some(buttons) => state.board.offer(&chat, &id.to_string(), buttons),
        None => return bad("BUTTON_DATA_INVALID"),
    }
    state.board.show(Shown { bot: token.to_owned(), chat, thread, id: id.to_string(), text: text.clone() });
    result(json!({ "message_id": id, "chat": { "id": body["chat_id"] }, "text": text }))
}

/// The buttons of a message; none where Telegram would not take them.
fn keyboard(markup: &Value) -> Option<Vec<(String, String)>> {
    let rows = markup["inline_keyboard"].as_array().into_iter().flatten();
    let buttons = rows.flat_map(|row| row.as_array().into_iter().flatten());
    let button = |button: &Value| {
        let data = button["callback_data"].as_str().filter(|data| (1..=MAX_DATA).contains(&data.len()))?;
        Some((button["text"].as_str()?.to_owned(), data.to_owned()))
    };
    buttons.map(button).collect()
}

fn edit(state: &State, body: &Value) -> Response<Body> {
    let text = match text(body) {
        Ok(text) => text,
        Err(why) => return bad(why),
    };
    match state.board.edit(&id_of(&body["chat_id"]), &id_of(&body["message_id"]), &text) {
        Edited::Changed => result(json!({ "message_id": body["message_id"], "text": text })),
        Edited::Same => bad(
            "message is not modified: specified new message content and reply markup are exactly the same as a \
             current content and reply markup of the message",
        ),
        Edited::Missing => bad("message to edit not found"),
    }
}

/// White space at both ends is not kept.
fn text(body: &Value) -> Result<String, &'static str> {
    let text = body["text"].as_str().unwrap_or_default().trim();
    if text.is_empty() {
        return Err("message text is empty");
    }
    if text.encode_utf16().count() > MAX_UNITS {
        return Err("message is too long");
    }
    Ok(text.to_owned())
}

fn id_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn file(state: &State, rest: &str) -> Response<Body> {
    let found = rest.split_once('/').filter(|(token, _)| state.user(token).is_some());
    let id = found.and_then(|(_, path)| path.strip_prefix("documents/"));
    id.and_then(|id| state.content(id))
        .map_or_else(|| refusal(404, None), |content| Response::new(content.into()))
}

fn result(result: Value) -> Response<Body> {
    answer_json(200, &json!({ "ok": true, "result": result }))
}

fn bad(description: &str) -> Response<Body> {
    let description = format!("Bad Request: {description}");
    answer_json(400, &json!({ "ok": false, "error_code": 400, "description": description }))
}

/// Only the body says when to try again: so does Telegram.
fn refusal(status: u16, seconds: Option<u64>) -> Response<Body> {
    let mut body = json!({ "ok": false, "error_code": status, "description": words(status) });
    if let Some(seconds) = seconds {
        body["parameters"] = json!({ "retry_after": seconds });
    }
    answer_json(status, &body)
}

fn words(status: u16) -> &'static str {
    match status {
        401 => "Unauthorized",
        404 => "Not Found",
        409 => "Conflict: terminated by other getUpdates request",
        429 => "Too Many Requests: retry later",
        _ => "Internal Server Error",
    }
}
