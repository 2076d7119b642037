//! The platform's responses to posted answers.

use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::server::ConnectionCut;
use super::state::WebhookState;
use super::{PostedReply, ReplyOutcome, signature};

pub(super) async fn handle_reply(
    state: Arc<WebhookState>,
    request: Request<Incoming>,
) -> Result<Response<Body>, ConnectionCut> {
    let (head, body) = request.into_parts();
    if head.method != Method::POST || head.uri.path() != "/replies" {
        return Ok(status_response(404));
    }
    let body = to_bytes(Body::new(body), usize::MAX).await.map_err(|_| ConnectionCut)?;
    if !is_genuine(&state, &head.headers, &body) {
        return Ok(status_response(401));
    }
    let Some(arrival) = parse_reply(&head.headers, &body) else { return Ok(status_response(400)) };
    let (outcome, id) = state.record_reply(arrival);
    match outcome {
        ReplyOutcome::Shown => Ok(accepted_response(&id)),
        ReplyOutcome::ShownThenStatus(code) | ReplyOutcome::Status(code) => Ok(status_response(code)),
        ReplyOutcome::Later { status: code, seconds } => {
            let mut response = status_response(code);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
            Ok(response)
        }
        ReplyOutcome::ShownThenCut | ReplyOutcome::Cut => Err(ConnectionCut),
        ReplyOutcome::ShownThenHang => std::future::pending().await,
    }
}

fn is_genuine(state: &WebhookState, headers: &HeaderMap, body: &Bytes) -> bool {
    let Some(secret) = state.secret() else { return true };
    header_text(headers, signature::SIGNATURE_HEADER)
        .is_some_and(|given| given == signature::sign(&secret, body))
}

/// Parses an answer. Returns `None` without a key, a peer or a text, or if the key differs from the header.
fn parse_reply(headers: &HeaderMap, body: &Bytes) -> Option<PostedReply> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let field = |name: &str| body.get(name)?.as_str().map(str::to_owned);
    let key = header_text(headers, "Idempotency-Key").filter(|key| Some(key) == field("key").as_ref())?;
    Some(PostedReply {
        key,
        peer: field("peer")?,
        thread: field("thread"),
        text: field("text")?,
        signature: header_text(headers, signature::SIGNATURE_HEADER),
        shown: false,
    })
}

fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn accepted_response(id: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(json!({ "id": id }).to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn status_response(code: u16) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // A redirect needs a target, so that a test can see that nobody follows it.
    if response.status().is_redirection() {
        response.headers_mut().insert("location", HeaderValue::from_static("/replies"));
    }
    response
}
