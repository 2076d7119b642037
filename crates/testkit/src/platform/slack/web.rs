//! The Web API. An error is an answer of status 200, as on Slack.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, Response};
use serde_json::{Value, json};

use super::State;
use crate::platform::wire::{self, Said, lock};

/// The name of the app whose token of this kind came along.
fn app(headers: &HeaderMap, kind: &str) -> Option<String> {
    let token = headers.get("authorization")?.to_str().ok()?.strip_prefix("Bearer ")?;
    token.strip_prefix(kind).map(str::to_owned)
}

fn refused(error: &str) -> Response<Body> {
    wire::json(&json!({ "ok": false, "error": error }))
}

pub(super) async fn identity(headers: HeaderMap) -> Response<Body> {
    match app(&headers, "xoxb-") {
        Some(_) => wire::json(&json!({ "ok": true, "user_id": "UBOT", "bot_id": "BBOT", "team_id": "T1" })),
        None => refused("invalid_auth"),
    }
}

pub(super) async fn connection(Shared(state): Shared<Arc<State>>, headers: HeaderMap) -> Response<Body> {
    let Some(app) = app(&headers, "xapp-") else { return refused("invalid_auth") };
    let left = |left: u32| left.checked_sub(1);
    if state.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok() {
        return refused("internal_error");
    }
    wire::json(&json!({ "ok": true, "url": format!("ws://{}/link/{app}", state.address) }))
}

pub(super) async fn message(
    Shared(state): Shared<Arc<State>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let Some(app) = app(&headers, "xoxb-") else { return refused("invalid_auth") };
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let field = |name: &str| body[name].as_str().map(str::to_owned);
    let (Some(peer), Some(text)) = (field("channel"), field("text")) else {
        return refused("invalid_arguments");
    };
    if peer == "CGONE" {
        return refused("channel_not_found");
    }
    let ts = format!("9.{}", state.next());
    let said = Said {
        account: app,
        id: format!("{peer}:{ts}"),
        thread: field("thread_ts"),
        text,
        peer: peer.clone(),
    };
    let show = || {
        state.board.show(said);
        wire::json(&json!({ "ok": true, "channel": peer, "ts": ts }))
    };
    state.posts.play(show).await
}

pub(super) async fn update(
    Shared(state): Shared<Arc<State>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    if app(&headers, "xoxb-").is_none() {
        return refused("invalid_auth");
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let field = |name: &str| body[name].as_str().unwrap_or_default();
    let id = format!("{}:{}", field("channel"), field("ts"));
    let show = || match state.board.edit(&id, field("text")) {
        true => wire::json(&json!({ "ok": true, "channel": body["channel"], "ts": body["ts"] })),
        false => refused("message_not_found"),
    };
    state.edits.play(show).await
}

pub(super) async fn file(
    Shared(state): Shared<Arc<State>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response<Body> {
    let content = lock(&state.files).get(&name).cloned();
    match (app(&headers, "xoxb-"), content) {
        (Some(_), Some(content)) => Response::new(Body::from(content)),
        _ => wire::status(404, &Value::Null),
    }
}
