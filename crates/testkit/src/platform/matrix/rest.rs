//! All calls except the event stream.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Path, State as Shared};
use axum::http::Response;
use axum::http::request::Parts;
use serde_json::{Value, json};

use super::{MatrixState, name};
use crate::platform::ReplyOutcome;
use crate::platform::board::{self, RecordedCall, VisibleMessage, apply_outcome, with_retry_after};
use crate::platform::server::ConnectionCut;
use crate::platform::state::lock;

/// Maximum content of an event, without what a homeserver adds.
const MAX_EVENT_BYTES: usize = 64_000;

pub(super) fn error_response(status: u16, code: &str) -> Response<Body> {
    board::json_response(status, &json!({ "errcode": code, "error": "no" }))
}

/// The authenticated user and device. Other requests are rejected.
pub(super) struct MatrixCaller {
    pub user: String,
    device: String,
}

impl FromRequestParts<Arc<MatrixState>> for MatrixCaller {
    type Rejection = Response<Body>;

    async fn from_request_parts(
        request: &mut Parts,
        state: &Arc<MatrixState>,
    ) -> Result<Self, Self::Rejection> {
        let header = request.headers.get("authorization");
        let token = header.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let known = token.and_then(|token| lock(&state.world).tokens.get(token).cloned());
        let (user, device) = known.ok_or_else(|| error_response(401, "M_UNKNOWN_TOKEN"))?;
        Ok(Self { user, device })
    }
}

/// Records the request and returns its outcome.
pub(super) fn scripted_outcome(state: &MatrixState, user: &str, kind: &str) -> ReplyOutcome {
    state.board.record_call(RecordedCall { bot: user.to_owned(), method: kind.to_owned(), body: Value::Null })
}

pub(super) fn refusal_response(status: u16, seconds: Option<u64>) -> Response<Body> {
    with_retry_after(error_response(status, "M_UNKNOWN"), seconds)
}

fn parse_body(body: &Bytes) -> Value {
    serde_json::from_slice(body).unwrap_or_default()
}

pub(super) async fn login(Shared(state): Shared<Arc<MatrixState>>, body: Bytes) -> Response<Body> {
    let body = parse_body(&body);
    let user = body["identifier"]["user"].as_str().unwrap_or_default().to_owned();
    if body["password"] != format!("pw-{}", name(&user)) {
        return error_response(403, "M_FORBIDDEN");
    }
    let mut world = lock(&state.world);
    world.logins += 1;
    let token = format!("token-{}", world.logins);
    let device = body["device_id"].as_str().map_or_else(|| format!("DEVICE{}", world.logins), str::to_owned);
    world.tokens.retain(|_, holder| *holder != (user.clone(), device.clone()));
    world.tokens.insert(token.clone(), (user.clone(), device.clone()));
    board::json_response(200, &json!({ "access_token": token, "device_id": device, "user_id": user }))
}

pub(super) async fn whoami(caller: MatrixCaller) -> Response<Body> {
    board::json_response(200, &json!({ "user_id": caller.user, "device_id": caller.device }))
}

pub(super) async fn account_data(
    Shared(state): Shared<Arc<MatrixState>>,
    Path(key): Path<(String, String)>,
    MatrixCaller { user, .. }: MatrixCaller,
) -> Result<Response<Body>, ConnectionCut> {
    let tell = || match lock(&state.world).account_data.get(&key) {
        Some(content) => board::json_response(200, content),
        None => error_response(404, "M_NOT_FOUND"),
    };
    apply_outcome(scripted_outcome(&state, &user, "stored"), tell, refusal_response).await
}

pub(super) async fn store_account_data(
    Shared(state): Shared<Arc<MatrixState>>,
    Path(key): Path<(String, String)>,
    MatrixCaller { user, .. }: MatrixCaller,
    body: Bytes,
) -> Result<Response<Body>, ConnectionCut> {
    let keep = || {
        lock(&state.world).account_data.insert(key, parse_body(&body));
        state.stored.fetch_add(1, Ordering::SeqCst);
        state.board.notify_change();
        board::json_response(200, &json!({}))
    };
    apply_outcome(scripted_outcome(&state, &user, "store"), keep, refusal_response).await
}

/// Sends an event. A transaction key that the device used before returns the event from then.
pub(super) async fn send(
    Shared(state): Shared<Arc<MatrixState>>,
    Path((room, key)): Path<(String, String)>,
    MatrixCaller { user, device }: MatrixCaller,
    body: Bytes,
) -> Result<Response<Body>, ConnectionCut> {
    let joined =
        lock(&state.world).members.get(&(room.clone(), user.clone())).is_some_and(|how| how == "join");
    if !joined {
        return Ok(error_response(403, "M_FORBIDDEN"));
    }
    if body.len() > MAX_EVENT_BYTES {
        return Ok(error_response(413, "M_TOO_LARGE"));
    }
    let show = || {
        let key = (user.clone(), device, key);
        let known = lock(&state.world).sent.get(&key).cloned();
        let id = known.unwrap_or_else(|| {
            let id = publish_message(&state, &room, &user, parse_body(&body));
            lock(&state.world).sent.insert(key, id.clone());
            id
        });
        board::json_response(200, &json!({ "event_id": id }))
    };
    apply_outcome(scripted_outcome(&state, &user, "send"), show, refusal_response).await
}

fn publish_message(state: &MatrixState, room: &str, user: &str, content: Value) -> String {
    let relation = content["m.relates_to"].clone();
    let text = |content: &Value| content["body"].as_str().unwrap_or_default().to_owned();
    let reply = text(&content);
    let new = text(&content["m.new_content"]);
    let event = json!({ "type": "m.room.message", "sender": user, "content": content });
    let id = state.append_event(room, event);
    let target = relation["event_id"].as_str().unwrap_or_default();
    if relation["rel_type"] == "m.replace" {
        state.board.edit_message(room, target, &new);
        return id;
    }
    let thread = (relation["rel_type"] == "m.thread").then(|| target.to_owned());
    state.board.show_message(VisibleMessage {
        bot: user.to_owned(),
        chat: room.to_owned(),
        thread,
        text: reply,
        id: id.clone(),
    });
    id
}

pub(super) async fn typing(
    Shared(state): Shared<Arc<MatrixState>>,
    Path(key): Path<(String, String)>,
    _: MatrixCaller,
) -> Response<Body> {
    lock(&state.world).typing.insert(key);
    board::json_response(200, &json!({}))
}

pub(super) async fn members(
    Shared(state): Shared<Arc<MatrixState>>,
    Path(room): Path<String>,
    MatrixCaller { user, .. }: MatrixCaller,
) -> Result<Response<Body>, ConnectionCut> {
    let tell = || {
        let world = lock(&state.world);
        let inside = world.members.iter().filter(|((place, _), how)| *place == room && *how == "join");
        let joined: serde_json::Map<_, _> =
            inside.map(|((_, user), _)| (user.clone(), json!({ "display_name": name(user) }))).collect();
        board::json_response(200, &json!({ "joined": joined }))
    };
    apply_outcome(scripted_outcome(&state, &user, "members"), tell, refusal_response).await
}

pub(super) async fn event(
    Shared(state): Shared<Arc<MatrixState>>,
    Path((_, id)): Path<(String, String)>,
    _: MatrixCaller,
) -> Response<Body> {
    let world = lock(&state.world);
    let found = world.stream.iter().find(|(_, event)| event["event_id"] == id.as_str());
    found.map_or_else(|| error_response(404, "M_NOT_FOUND"), |(_, event)| board::json_response(200, event))
}

/// Joins or leaves a room.
pub(super) async fn change_membership(
    Shared(state): Shared<Arc<MatrixState>>,
    Path((room, action)): Path<(String, String)>,
    MatrixCaller { user, .. }: MatrixCaller,
) -> Response<Body> {
    let membership = if action == "join" { "join" } else { "leave" };
    state.set_member(&room, &user, &user, &json!({ "membership": membership }));
    board::json_response(200, &json!({ "room_id": room }))
}

pub(super) async fn media(
    Shared(state): Shared<Arc<MatrixState>>,
    Path((_, id)): Path<(String, String)>,
    _: MatrixCaller,
) -> Response<Body> {
    let content = lock(&state.world).files.get(&id).cloned();
    content.map_or_else(|| error_response(404, "M_NOT_FOUND"), |content| Response::new(Body::from(content)))
}
