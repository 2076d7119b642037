//! What goes over the socket.

use axum::extract::ws::Message;
use polyclaw_domain::redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Detail, Error};

/// What peers send: requests and nothing else.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Incoming {
    Req {
        /// Any value; the answer carries it back.
        id: Value,
        method: String,
        #[serde(default)]
        params: Value,
    },
}

#[derive(Serialize)]
struct Response<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: &'a Value,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Detail>,
}

/// An error may quote what was asked, and that may be a secret in the wrong place.
pub fn response(id: &Value, outcome: Result<Value, Error>, redactor: &Redactor) -> Message {
    let (ok, result, error) = match outcome {
        Ok(result) => (true, Some(result), None),
        Err(error) => {
            error.log();
            let mut detail = error.detail();
            redactor.redact_in_place(&mut detail.message);
            (false, None, Some(detail))
        }
    };
    text(&Response { kind: "res", id, ok, result, error })
}

pub fn text(frame: &impl Serialize) -> Message {
    // Nothing we send can fail to be JSON.
    Message::Text(serde_json::to_string(frame).unwrap_or_default().into())
}
