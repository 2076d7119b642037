//! The methods, as the Bot API answers them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, Response};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::state::TelegramState;
use crate::platform::board::{
    EditOutcome, RecordedCall, VisibleMessage, apply_outcome, json_response as answer_json,
};
use crate::platform::server::ConnectionCut;

/// Maximum message length, in the strictest unit: UTF-16 code units.
const MAX_MESSAGE_UTF16_UNITS: usize = 4096;
/// Maximum length of a button's data, in bytes.
const MAX_CALLBACK_DATA_BYTES: usize = 64;

pub(super) async fn handle_request(
    state: Arc<TelegramState>,
    request: Request<Incoming>,
) -> Result<Response<Body>, ConnectionCut> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let body = to_bytes(Body::new(body), usize::MAX).await.map_err(|_| ConnectionCut)?;
    if let Some(rest) = path.strip_prefix("/file/bot") {
        return Ok(serve_file(&state, rest));
    }
    let Some((token, method)) = path.strip_prefix("/bot").and_then(|rest| rest.split_once('/')) else {
        return Ok(refusal_response(404, None));
    };
    let Some(user) = state.bot_user(token) else { return Ok(refusal_response(401, None)) };
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let called = RecordedCall { bot: token.to_owned(), method: method.to_owned(), body: body.clone() };
    let outcome = state.board.record_call(called);
    if method == "getUpdates" && outcome.is_visible() {
        wait_for_updates(&state, token, &body).await;
    }
    apply_outcome(outcome, || perform_call(&state, token, user, method, &body), refusal_response).await
}

fn perform_call(
    state: &TelegramState,
    token: &str,
    user: Value,
    method: &str,
    body: &Value,
) -> Response<Body> {
    match method {
        "getMe" => ok_response(user),
        "getUpdates" => {
            let limit = body["limit"].as_u64().and_then(|limit| limit.try_into().ok()).unwrap_or(100);
            ok_response(state.updates(token, parse_offset(body), limit).into())
        }
        "sendMessage" => send_message(state, token, body),
        "editMessageText" => edit_message(state, body),
        "sendChatAction" | "setMyCommands" | "answerCallbackQuery" => ok_response(true.into()),
        "getFile" => match body["file_id"].as_str().filter(|id| state.file_content(id).is_some()) {
            Some(id) => ok_response(json!({ "file_id": id, "file_path": format!("documents/{id}") })),
            None => bad_request("invalid file_id"),
        },
        _ => refusal_response(404, None),
    }
}

async fn wait_for_updates(state: &TelegramState, token: &str, body: &Value) {
    let seconds = body["timeout"].as_u64().unwrap_or(0);
    let _poll = state.start_poll(token);
    let mut changes = state.board.watch_changes();
    let some = async {
        while state.updates(token, parse_offset(body), 1).is_empty() && changes.changed().await.is_ok() {}
    };
    let _ = tokio::time::timeout(Duration::from_secs(seconds), some).await;
}

fn parse_offset(body: &Value) -> i64 {
    body["offset"].as_i64().unwrap_or(0)
}

fn send_message(state: &TelegramState, token: &str, body: &Value) -> Response<Body> {
    let text = match message_text(body) {
        Ok(text) => text,
        Err(why) => return bad_request(why),
    };
    let (chat, id) = (id_text(&body["chat_id"]), state.next_id());
    let thread = Some(id_text(&body["message_thread_id"])).filter(|thread| thread != "null");
    match parse_keyboard(&body["reply_markup"]) {
        Some(buttons) => state.board.set_buttons(&chat, &id.to_string(), buttons),
        None => return bad_request("BUTTON_DATA_INVALID"),
    }
    state.board.show_message(VisibleMessage {
        bot: token.to_owned(),
        chat,
        thread,
        id: id.to_string(),
        text: text.clone(),
    });
    ok_response(json!({ "message_id": id, "chat": { "id": body["chat_id"] }, "text": text }))
}

/// Returns the buttons of a message, or `None` if Telegram would reject them.
fn parse_keyboard(markup: &Value) -> Option<Vec<(String, String)>> {
    let rows = markup["inline_keyboard"].as_array().into_iter().flatten();
    let buttons = rows.flat_map(|row| row.as_array().into_iter().flatten());
    let button = |button: &Value| {
        let data = button["callback_data"]
            .as_str()
            .filter(|data| (1..=MAX_CALLBACK_DATA_BYTES).contains(&data.len()))?;
        Some((button["text"].as_str()?.to_owned(), data.to_owned()))
    };
    buttons.map(button).collect()
}

fn edit_message(state: &TelegramState, body: &Value) -> Response<Body> {
    let text = match message_text(body) {
        Ok(text) => text,
        Err(why) => return bad_request(why),
    };
    match state.board.edit_message(&id_text(&body["chat_id"]), &id_text(&body["message_id"]), &text) {
        EditOutcome::Changed => ok_response(json!({ "message_id": body["message_id"], "text": text })),
        EditOutcome::Same => bad_request(
            "message is not modified: specified new message content and reply markup are exactly the same as a \
             current content and reply markup of the message",
        ),
        EditOutcome::Missing => bad_request("message to edit not found"),
    }
}

/// Returns the text. Telegram trims it.
fn message_text(body: &Value) -> Result<String, &'static str> {
    let text = body["text"].as_str().unwrap_or_default().trim();
    if text.is_empty() {
        return Err("message text is empty");
    }
    if text.encode_utf16().count() > MAX_MESSAGE_UTF16_UNITS {
        return Err("message is too long");
    }
    Ok(text.to_owned())
}

fn id_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn serve_file(state: &TelegramState, rest: &str) -> Response<Body> {
    let found = rest.split_once('/').filter(|(token, _)| state.bot_user(token).is_some());
    let id = found.and_then(|(_, path)| path.strip_prefix("documents/"));
    id.and_then(|id| state.file_content(id))
        .map_or_else(|| refusal_response(404, None), |content| Response::new(content.into()))
}

fn ok_response(result: Value) -> Response<Body> {
    answer_json(200, &json!({ "ok": true, "result": result }))
}

fn bad_request(description: &str) -> Response<Body> {
    let description = format!("Bad Request: {description}");
    answer_json(400, &json!({ "ok": false, "error_code": 400, "description": description }))
}

/// Builds an error response. As with Telegram, only the body says when to retry.
fn refusal_response(status: u16, seconds: Option<u64>) -> Response<Body> {
    let mut body = json!({ "ok": false, "error_code": status, "description": status_description(status) });
    if let Some(seconds) = seconds {
        body["parameters"] = json!({ "retry_after": seconds });
    }
    answer_json(status, &body)
}

fn status_description(status: u16) -> &'static str {
    match status {
        401 => "Unauthorized",
        404 => "Not Found",
        409 => "Conflict: terminated by other getUpdates request",
        429 => "Too Many Requests: retry later",
        _ => "Internal Server Error",
    }
}
