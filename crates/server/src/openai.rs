//! OpenAI-compatible APIs. An agent is a model, and a `user` is a session.
//!
//! - `user` names a persistent session. Only the messages after the last reply are new; the session knows the rest.
//! - Without `user` each request is a new session that starts with the history the client sent.
//! - System and developer messages are added after the agent's own instructions for that turn only. They are not
//!   stored as messages and grant no rights that the caller lacks.
//! - `tools` belong to the client. A turn that calls one ends, and its results start the next turn.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::error::Error;

pub mod chat;
mod content;
mod idempotency;
pub mod models;
mod question;
pub mod responses;

/// The error code that OpenAI clients know for an exhausted budget; they do not retry it.
const QUOTA_ERROR_CODE: &str = "insufficient_quota";

/// Converts an error response to the OpenAI format.
pub fn reshape_error(response: Response) -> Response {
    let Some(error) = response.extensions().get::<Error>().cloned() else { return response };
    let mut shaped = (response.status(), Json(json!({ "error": error_json(&error) }))).into_response();
    if let Some(after) = response.headers().get(header::RETRY_AFTER) {
        shaped.headers_mut().insert(header::RETRY_AFTER, after.clone());
    }
    // The failed turn is stored: a retry would start another turn.
    if matches!(error, Error::TurnFailed { .. }) {
        shaped.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    }
    shaped.extensions_mut().insert(error);
    shaped
}

pub fn error_json(error: &Error) -> Value {
    let kind = match error.status() {
        _ if error.is_budget_exhausted() => QUOTA_ERROR_CODE,
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    };
    let detail = error.detail();
    let code = match error {
        Error::UnknownModel(_) | Error::Engine(polyclaw_engine::Error::UnknownAgent(_)) => "model_not_found",
        _ if error.is_budget_exhausted() => QUOTA_ERROR_CODE,
        _ => detail.code.as_str(),
    };
    json!({ "message": detail.message, "type": kind, "param": null, "code": code })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a 502 or `retry-after` clients retry, which is useless and costly when the budget is exhausted.
    #[test]
    fn exhausted_budget_is_reported_as_not_retryable() {
        let failed = |code: &str| Error::TurnFailed { code: code.to_owned(), sentence: "Spent.".to_owned() };
        let spent = reshape_error(failed("budget_exhausted").into_response());
        assert_eq!(spent.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(spent.headers()["x-should-retry"], "false");
        assert!(!spent.headers().contains_key(header::RETRY_AFTER));
        let shown = error_json(&failed("budget_exhausted"));
        assert_eq!((&shown["type"], &shown["code"]), (&json!(QUOTA_ERROR_CODE), &json!(QUOTA_ERROR_CODE)));
        let other = reshape_error(failed("provider_failed").into_response());
        assert_eq!(other.status(), StatusCode::BAD_GATEWAY);
    }
}
