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

pub mod chat;
mod content;
mod idempotency;
pub mod models;
mod question;
pub mod responses;

/// What these clients call a budget that is spent; they do not try again.
const QUOTA_ERROR_CODE: &str = "insufficient_quota";

/// Gives an error of ours the shape these clients read.
pub fn reshape_error(response: Response) -> Response {
    let Some(error) = response.extensions().get::<Error>().cloned() else { return response };
    let mut shaped = (response.status(), Json(json!({ "error": error_json(&error) }))).into_response();
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

    /// What clients do with a 502 or a `retry-after` is to ask again, which costs money where there is none.
    #[test]
    fn a_spent_budget_is_not_asked_again() {
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
