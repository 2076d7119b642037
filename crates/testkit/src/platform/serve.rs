//! The server's side of the wire: what happens to an answer that is posted to `/replies`.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State as Shared;
use axum::http::{HeaderMap, Response};
use serde_json::{Value, json};

use super::state::State;
use super::{Arrival, signature, wire};

pub(super) async fn answer(
    Shared(state): Shared<Arc<State>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    if !is_genuine(&state, &headers, &body) {
        return wire::status(401, &Value::Null);
    }
    let Some(arrival) = read(&headers, &body) else { return wire::status(400, &Value::Null) };
    let (outcome, id) = state.take_in(arrival);
    wire::perform(outcome, wire::json(&json!({ "id": id }))).await
}

fn is_genuine(state: &State, headers: &HeaderMap, body: &Bytes) -> bool {
    let Some(secret) = state.secret() else { return true };
    text(headers, signature::HEADER).is_some_and(|given| given == signature::sign(&secret, body))
}

/// A body without a key, a peer or a text, or with another key than its header, is a fault of the sender.
fn read(headers: &HeaderMap, body: &Bytes) -> Option<Arrival> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let field = |name: &str| body.get(name)?.as_str().map(str::to_owned);
    let key = text(headers, "Idempotency-Key").filter(|key| Some(key) == field("key").as_ref())?;
    Some(Arrival {
        key,
        peer: field("peer")?,
        thread: field("thread"),
        text: field("text")?,
        signature: text(headers, signature::HEADER),
        shown: false,
    })
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}
