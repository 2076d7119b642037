//! Calls that change something may carry an `Idempotency-Key`. A repeated call with the same key returns the first
//! response and changes nothing.

use std::panic::AssertUnwindSafe;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use polyclaw_control::{ControlCaller, run_to_completion};
use polyclaw_domain::hex::encode_hex;
use polyclaw_store::registry::idempotency::{self, IdempotencyState, IdempotentCall};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::state::ControlState;
use crate::error::{Error, Result};
use crate::extract::{MAX_MESSAGE_BYTES, read_body_up_to};

/// The body limit of the control plane.
const MAX_CONTROL_BODY_BYTES: usize = 1024 * 1024;
const IDEMPOTENCY_KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");
const IDEMPOTENCY_REPLAYED_HEADER: HeaderName = HeaderName::from_static("idempotency-replayed");
const MAX_IDEMPOTENCY_KEY_LEN: usize = 255;
const SECRET_FIELD: &str = "secret";
const RESPONSE_RETENTION_MS: i64 = 24 * 3_600_000;

/// Reads the body completely before the handler runs, up to the limit.
pub async fn limit_body(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match read_body_up_to(Request::from_parts(parts.clone(), body), MAX_CONTROL_BODY_BYTES).await {
        Ok(body) => next.run(Request::from_parts(parts, Body::from(body))).await,
        Err(error) => error.into_response(),
    }
}

pub async fn run_once(State(app): State<ControlState>, request: Request, next: Next) -> Response {
    respond_once(&app, request, next, MAX_CONTROL_BODY_BYTES)
        .await
        .unwrap_or_else(IntoResponse::into_response)
}

/// Like `run_once`, for forwarded calls. OpenAI-compatible calls handle the key themselves, because their responses
/// may be streams.
pub async fn run_proxied_once(State(app): State<ControlState>, request: Request, next: Next) -> Response {
    if request.uri().path().contains("/gateway/v1/") {
        return next.run(request).await;
    }
    respond_once(&app, request, next, MAX_MESSAGE_BYTES).await.unwrap_or_else(IntoResponse::into_response)
}

async fn respond_once(app: &ControlState, request: Request, next: Next, most: usize) -> Result<Response> {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(next.run(request).await);
    }
    let (parts, body) = request.into_parts();
    let Some(key) = parts.headers.get(IDEMPOTENCY_KEY_HEADER) else {
        return Ok(next.run(Request::from_parts(parts, body)).await);
    };
    let body = read_body_up_to(Request::from_parts(parts.clone(), body), most).await?;
    let key = key.to_str().ok().filter(|key| !key.is_empty() && key.len() <= MAX_IDEMPOTENCY_KEY_LEN);
    let key = key
        .ok_or_else(|| {
            Error::invalid_field("Idempotency-Key", "must be 1 to 255 printable ASCII characters")
        })?
        .to_owned();
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let asked = Sha256::new().chain_update(parts.method.as_str()).chain_update("\0").chain_update(path);
    let request = encode_hex(&asked.chain_update("\0").chain_update(&body).finalize());
    let caller = parts.extensions.get::<ControlCaller>().map(|caller| caller.who.clone()).unwrap_or_default();
    let (app, call) = (app.clone(), IdempotentCall { caller, key, request });
    let asked = Request::from_parts(parts, Body::from(body));
    // A caller that disconnects will repeat the call with the same key, so the call must run to its end.
    run_to_completion(async move { run_first_time(&app, call, asked, next).await }).await
}

async fn run_first_time(
    app: &ControlState,
    call: IdempotentCall,
    asked: Request,
    next: Next,
) -> Result<Response> {
    match begin_request(app, &call).await? {
        IdempotencyState::Answered { status, body } => return Ok(replayed_response(status, body)),
        IdempotencyState::UnderWay => return Err(Error::RequestInProgress),
        IdempotencyState::Other => return Err(Error::KeyUsedElsewhere),
        IdempotencyState::Started => {}
    }
    let answered = AssertUnwindSafe(next.run(asked)).catch_unwind().await;
    let response = answered.unwrap_or_else(|_| Error::Panicked.into_response());
    store_response(app, call, response).await
}

async fn begin_request(app: &ControlState, call: &IdempotentCall) -> Result<IdempotencyState> {
    let (call, now) = (call.clone(), app.control.now());
    Ok(app
        .control
        .db()
        .write(move |tx| idempotency::begin_call(tx, &call, now, now.minus(RESPONSE_RETENTION_MS)))
        .await?)
}

/// Stores the response, unless a repeated call could have another result.
async fn store_response(app: &ControlState, call: IdempotentCall, response: Response) -> Result<Response> {
    let status = response.status();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.map(http_body_util::Collected::to_bytes);
    let passes = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
    // An incomplete response is not stored either.
    let settled = bytes.as_ref().ok().filter(|_| !passes).map(|bytes| redact_secret(bytes));
    let kept = app.control.db().write(move |tx| match &settled {
        Some(text) => idempotency::record_response(tx, &call, status.as_u16(), text),
        None => idempotency::delete_call(tx, &call),
    });
    kept.await?;
    Ok(Response::from_parts(parts, Body::from(bytes.map_err(|_| Error::Panicked)?)))
}

/// Removes the secret from a stored response. A new token is shown once and stored nowhere; a repeated call returns
/// only its id.
fn redact_secret(answer: &[u8]) -> String {
    let text = || String::from_utf8_lossy(answer).into_owned();
    match serde_json::from_slice(answer) {
        Ok(Value::Object(mut fields)) if fields.contains_key(SECRET_FIELD) => {
            fields.insert(SECRET_FIELD.to_owned(), Value::Null);
            Value::Object(fields).to_string()
        }
        _ => text(),
    }
}

fn replayed_response(status: u16, body: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(IDEMPOTENCY_REPLAYED_HEADER, HeaderValue::from_static("true"));
    response
}
