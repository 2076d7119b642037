//! Everything but the stream.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, Response};
use serde_json::{Value, json};

use super::{State, name};
use crate::platform::wire::{self, Said, lock};

pub(super) fn refused(status: u16, code: &str) -> Response<Body> {
    wire::status(status, &json!({ "errcode": code, "error": "no" }))
}

/// Who asks, and from which device.
pub(super) fn caller(state: &State, headers: &HeaderMap) -> Result<(String, String), Box<Response<Body>>> {
    let token = headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let known = token.and_then(|token| lock(&state.world).tokens.get(token).cloned());
    known.ok_or_else(|| Box::new(refused(401, "M_UNKNOWN_TOKEN")))
}

fn read(body: &Bytes) -> Value {
    serde_json::from_slice(body).unwrap_or_default()
}

pub(super) async fn login(Shared(state): Shared<Arc<State>>, body: Bytes) -> Response<Body> {
    let body = read(&body);
    let user = body["identifier"]["user"].as_str().unwrap_or_default().to_owned();
    if body["password"] != format!("pw-{}", name(&user)) {
        return refused(403, "M_FORBIDDEN");
    }
    let mut world = lock(&state.world);
    world.logins += 1;
    let token = format!("token-{}", world.logins);
    let device = body["device_id"].as_str().map_or_else(|| format!("DEVICE{}", world.logins), str::to_owned);
    world.tokens.retain(|_, holder| *holder != (user.clone(), device.clone()));
    world.tokens.insert(token.clone(), (user.clone(), device.clone()));
    wire::json(&json!({ "access_token": token, "device_id": device, "user_id": user }))
}

pub(super) async fn whoami(Shared(state): Shared<Arc<State>>, headers: HeaderMap) -> Response<Body> {
    match caller(&state, &headers) {
        Ok((user, device)) => wire::json(&json!({ "user_id": user, "device_id": device })),
        Err(refused) => *refused,
    }
}

pub(super) async fn data(
    Shared(state): Shared<Arc<State>>,
    Path((user, kind)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response<Body> {
    match caller(&state, &headers) {
        Err(refused) => *refused,
        Ok(_) => match lock(&state.world).account_data.get(&(user, kind)) {
            Some(content) => wire::json(content),
            None => refused(404, "M_NOT_FOUND"),
        },
    }
}

pub(super) async fn store(
    Shared(state): Shared<Arc<State>>,
    Path(key): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    if let Err(refused) = caller(&state, &headers) {
        return *refused;
    }
    let keep = || {
        lock(&state.world).account_data.insert(key, read(&body));
        state.stored.send_modify(|count| *count += 1);
        wire::json(&json!({}))
    };
    state.stores.play(keep).await
}

/// A key that a device used before is answered with what it made then.
pub(super) async fn send(
    Shared(state): Shared<Arc<State>>,
    Path((room, key)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let (user, device) = match caller(&state, &headers) {
        Ok(caller) => caller,
        Err(refused) => return *refused,
    };
    let joined =
        lock(&state.world).members.get(&(room.clone(), user.clone())).is_some_and(|how| how == "join");
    if !joined {
        return refused(403, "M_FORBIDDEN");
    }
    let content = read(&body);
    let show = || {
        let key = (user.clone(), device, key);
        let known = lock(&state.world).sent.get(&key).cloned();
        let id = known.unwrap_or_else(|| {
            let id = publish(&state, &room, &user, content);
            lock(&state.world).sent.insert(key, id.clone());
            id
        });
        wire::json(&json!({ "event_id": id }))
    };
    state.posts.play(show).await
}

fn publish(state: &State, room: &str, user: &str, content: Value) -> String {
    let relation = content["m.relates_to"].clone();
    let text = |content: &Value| content["body"].as_str().unwrap_or_default().to_owned();
    let said = text(&content);
    let new = text(&content["m.new_content"]);
    let event = json!({ "type": "m.room.message", "sender": user, "content": content });
    let id = state.append(room, event);
    let target = relation["event_id"].as_str().unwrap_or_default();
    if relation["rel_type"] == "m.replace" {
        state.board.edit(target, &new);
        return id;
    }
    let thread = (relation["rel_type"] == "m.thread").then(|| target.to_owned());
    state.board.show(Said {
        account: user.to_owned(),
        peer: room.to_owned(),
        thread,
        text: said,
        id: id.clone(),
    });
    id
}

pub(super) async fn typing(
    Shared(state): Shared<Arc<State>>,
    Path(key): Path<(String, String)>,
    headers: HeaderMap,
) -> Response<Body> {
    if let Err(refused) = caller(&state, &headers) {
        return *refused;
    }
    lock(&state.world).typing.insert(key);
    wire::json(&json!({}))
}

pub(super) async fn members(
    Shared(state): Shared<Arc<State>>,
    Path(room): Path<String>,
    headers: HeaderMap,
) -> Response<Body> {
    if let Err(refused) = caller(&state, &headers) {
        return *refused;
    }
    let world = lock(&state.world);
    let inside = world.members.iter().filter(|((place, _), how)| *place == room && *how == "join");
    let joined: serde_json::Map<_, _> =
        inside.map(|((_, user), _)| (user.clone(), json!({ "display_name": name(user) }))).collect();
    wire::json(&json!({ "joined": joined }))
}

pub(super) async fn event(
    Shared(state): Shared<Arc<State>>,
    Path((_, id)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response<Body> {
    if let Err(refused) = caller(&state, &headers) {
        return *refused;
    }
    let world = lock(&state.world);
    let found = world.stream.iter().find(|(_, event)| event["event_id"] == id.as_str());
    found.map_or_else(|| refused(404, "M_NOT_FOUND"), |(_, event)| wire::json(event))
}

/// Goes into a room, or out of it.
pub(super) async fn change(
    Shared(state): Shared<Arc<State>>,
    Path((room, action)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response<Body> {
    let (user, _) = match caller(&state, &headers) {
        Ok(caller) => caller,
        Err(refused) => return *refused,
    };
    let membership = if action == "join" { "join" } else { "leave" };
    state.set_member(&room, &user, &user, &json!({ "membership": membership }));
    wire::json(&json!({ "room_id": room }))
}

pub(super) async fn media(
    Shared(state): Shared<Arc<State>>,
    Path((_, id)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response<Body> {
    if let Err(refused) = caller(&state, &headers) {
        return *refused;
    }
    let content = lock(&state.world).files.get(&id).cloned();
    content.map_or_else(|| refused(404, "M_NOT_FOUND"), |content| Response::new(Body::from(content)))
}
