//! The methods of the socket: the same calls as over HTTP.

use axum::extract::ws::Message;
use polyclaw_domain::approval::ApprovalDecision;
use polyclaw_domain::id::ApprovalId;
use polyclaw_domain::session_key::SessionKey;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::access::May;
use crate::error::{Error, Result};
use crate::http::messages::{self, Receipt};
use crate::http::stream::Position;
use crate::http::{approvals, commands};
use crate::refusal;
use crate::state::AppState;
use crate::ws::frame::{Incoming, response};
use crate::ws::subscription::Subscriptions;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Subscribe {
    session_key: SessionKey,
    /// Frames behind this number first.
    after: Option<u64>,
    /// The life of the server that number is from.
    epoch: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Session {
    session_key: SessionKey,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
struct Send {
    session_key: SessionKey,
    #[serde(flatten)]
    message: messages::Message,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Command {
    session_key: SessionKey,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Approve {
    approval_id: String,
    decision: ApprovalDecision,
    reason: Option<String>,
    fingerprint: Option<String>,
}

/// The answer to one frame of a peer. What is no request is answered without an id.
pub async fn answer(app: &AppState, by: May, subscriptions: &mut Subscriptions, text: &str) -> Message {
    match serde_json::from_str(text) {
        Ok(Incoming::Req { id, method, params }) => {
            let outcome = call((app, by), subscriptions, &method, params).await;
            response(&id, outcome, &app.engine.redactor())
        }
        Err(error) => {
            let malformed = Err(Error::MalformedJson(error.to_string()));
            response(&Value::Null, malformed, &app.engine.redactor())
        }
    }
}

/// Whether a frame of a peer asks for nothing but to be told.
pub fn only_looks(frame: &[u8]) -> bool {
    let Ok(Incoming::Req { method, .. }) = serde_json::from_slice(frame) else { return false };
    ["subscribe", "watch", "unsubscribe"].contains(&method.as_str())
}

async fn call(
    (app, by): (&AppState, May),
    open: &mut Subscriptions,
    method: &str,
    params: Value,
) -> Result<Value> {
    match method {
        "subscribe" => {
            let wanted: Subscribe = read(params)?;
            open.add(wanted.session_key, &Position { after: wanted.after, epoch: wanted.epoch })
        }
        "watch" => {
            let Nothing {} = read(params)?;
            Ok(open.watch())
        }
        "unsubscribe" => {
            let wanted: Session = read(params)?;
            Ok(json!({ "unsubscribed": open.remove(&wanted.session_key) }))
        }
        "send" => {
            let said: Send = read(params)?;
            let inbound = messages::inbound(app, by, said.session_key, said.message).await?;
            let inbound = app.engine.resolve_addressee(inbound).await?;
            value(Receipt::from(app.engine.submit_message(inbound).await?))
        }
        "stop" => {
            let wanted: Session = read(params)?;
            let stopped = app.engine.stop_session(&wanted.session_key).await?;
            Ok(json!({ "turn_id": stopped.turn, "interrupted_tasks": stopped.interrupted_tasks }))
        }
        "command" => {
            let command: Command = read(params)?;
            value(commands::said(app, by, &command.session_key, &command.text).await?)
        }
        "approve" => approve(app, by, read(params)?).await,
        other => Err(Error::UnknownMethod(other.chars().take(40).collect())),
    }
}

async fn approve(app: &AppState, by: May, verdict: Approve) -> Result<Value> {
    let Approve { approval_id, decision, reason, fingerprint } = verdict;
    let verdict = approvals::Verdict { decision, reason, fingerprint };
    value(approvals::answer(app, by, &ApprovalId::new(approval_id), verdict).await?)
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T> {
    if params.is_array() {
        return Err(Error::InvalidBody("params must be an object, not a list".to_owned()));
    }
    serde_json::from_value(params).map_err(|error| Error::InvalidBody(refusal::plain(&error.to_string())))
}

fn value(result: impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(result).map_err(|error| Error::InvalidBody(error.to_string()))
}
