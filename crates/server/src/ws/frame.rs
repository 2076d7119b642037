//! The frames of the socket.

use axum::extract::ws::Message;
use polyclaw_api::error::ErrorBodyDetail;
use polyclaw_domain::redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;

/// A frame from a peer, which is always a request.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SocketRequest {
    Req {
        /// Any value. The response repeats it.
        id: Value,
        method: String,
        #[serde(default)]
        params: Value,
    },
}

#[derive(Serialize)]
struct SocketResponse<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: &'a Value,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBodyDetail>,
}

/// Builds a response. Errors may quote the request, so secrets are redacted.
pub fn response_frame(id: &Value, outcome: Result<Value, Error>, redactor: &Redactor) -> Message {
    let (ok, result, error) = match outcome {
        Ok(result) => (true, Some(result), None),
        Err(error) => {
            error.log_internal();
            let mut detail = error.detail();
            redactor.redact_in_place(&mut detail.message);
            (false, None, Some(detail))
        }
    };
    text_frame(&SocketResponse { kind: "res", id, ok, result, error })
}

pub fn text_frame(frame: &impl Serialize) -> Message {
    // Our frames always serialize.
    Message::Text(serde_json::to_string(frame).unwrap_or_default().into())
}
