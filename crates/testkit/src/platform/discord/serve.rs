//! Dispatches requests: the gateway URL becomes a WebSocket, everything else is a REST call with a name.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::header::{AUTHORIZATION, CONNECTION, UPGRADE};
use axum::http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::state::DiscordState;
use super::{gateway, rest};
use crate::platform::board::{RecordedCall, apply_outcome, json_response as answer_json, with_retry_after};
use crate::platform::server::ConnectionCut;

pub(super) async fn handle_request(
    state: Arc<DiscordState>,
    request: Request<Incoming>,
) -> Result<Response<Body>, ConnectionCut> {
    if request.uri().path() == "/gateway/" {
        return Ok(upgrade_gateway(state, request));
    }
    let (head, body) = request.into_parts();
    let body = to_bytes(Body::new(body), usize::MAX).await.map_err(|_| ConnectionCut)?;
    let path = head.uri.path().to_owned();
    if path == "/files/pixel.png" {
        return Ok(Response::new(crate::PIXEL.into()));
    }
    if let Some(text) = path.strip_prefix("/files/") {
        return Ok(Response::new(text.to_owned().into()));
    }
    let token = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let token = token.strip_prefix("Bot ").unwrap_or_default().to_owned();
    let Some(id) = state.with_bot(&token, |bot| bot.id.clone()) else {
        return Ok(refusal_response(401, None));
    };
    let segments: Vec<&str> = path.trim_start_matches("/api/v10/").split('/').collect();
    let call = rest::RestCall {
        token: &token,
        bot: &id,
        name: rest::name(head.method.as_str(), &segments),
        segments: &segments,
        query: head.uri.query().unwrap_or_default(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    let called = RecordedCall { bot: token.clone(), method: call.name.clone(), body: call.body.clone() };
    let outcome = state.board.record_call(called);
    apply_outcome(outcome, || rest::perform_call(&state, &call), refusal_response).await
}

fn upgrade_gateway(state: Arc<DiscordState>, request: Request<Incoming>) -> Response<Body> {
    let key = request.headers().get("sec-websocket-key").map(HeaderValue::as_bytes).unwrap_or_default();
    let accept = HeaderValue::from_str(&derive_accept_key(key)).expect("base64 is a header");
    tokio::spawn(gateway::serve_gateway(state, request));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert("sec-websocket-accept", accept);
    response
}

/// Builds an error response. `retry_after` is a fraction in the body and an integer in the header.
fn refusal_response(status: u16, seconds: Option<u64>) -> Response<Body> {
    let mut body: Value = json!({ "message": format!("status {status}"), "code": 0 });
    if let Some(seconds) = seconds {
        body["retry_after"] = json!(f64::from(u32::try_from(seconds).unwrap_or(u32::MAX)));
    }
    with_retry_after(answer_json(status, &body), seconds)
}
