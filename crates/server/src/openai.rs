//! The shapes of OpenAI's clients: an agent is a model, a `user` is a session.
//!
//! - `user` names a session that lasts; only the messages after the last reply are new, the rest it knows.
//! - Without `user` each request is a session of its own, begun with the history the client brought.
//! - System and developer messages are added to the agent's own instructions for that turn only: they come
//!   after them, are never stored as something said, and give no right the caller has not.
//! - `tools` are the client's own: a turn that calls one ends, and its results start the next.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::error::Error;

mod ask;
pub mod chat;
mod content;
pub mod models;
pub mod responses;

/// Gives an error of ours the shape these clients read.
pub fn reshape(response: Response) -> Response {
    let Some(error) = response.extensions().get::<Error>().cloned() else { return response };
    let mut shaped = (response.status(), Json(json!({ "error": body(&error) }))).into_response();
    if let Some(after) = response.headers().get(header::RETRY_AFTER) {
        shaped.headers_mut().insert(header::RETRY_AFTER, after.clone());
    }
    // The turn is over and stored: the same question again would be another turn.
    if matches!(error, Error::TurnFailed { .. }) {
        shaped.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    }
    shaped.extensions_mut().insert(error);
    shaped
}

pub fn body(error: &Error) -> Value {
    let kind = match error.status() {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    };
    let detail = error.detail();
    let code = match error {
        Error::UnknownModel(_) | Error::Engine(polyclaw_engine::Error::UnknownAgent(_)) => "model_not_found",
        _ => detail.code.as_str(),
    };
    json!({ "message": detail.message, "type": kind, "param": null, "code": code })
}
