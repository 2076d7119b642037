//! The methods of the socket: the same calls as over HTTP.

use axum::extract::ws::Message;
use polyclaw_api::approvals::ApprovalDecisionBody;
use polyclaw_api::messages::NewSessionMessage;
use polyclaw_domain::approval::ApprovalDecision;
use polyclaw_domain::id::ApprovalId;
use polyclaw_domain::session_key::SessionKey;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::access::AccessLevel;
use crate::error::{Error, Result};
use crate::http::messages::{self, session_message_receipt};
use crate::http::stream::StreamCursor;
use crate::http::{approvals, commands};
use crate::serde_errors;
use crate::state::AppState;
use crate::ws::frame::{SocketRequest, response_frame};
use crate::ws::subscription::SocketSubscriptions;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubscribeParams {
    session_key: SessionKey,
    /// Frames after this number are sent first.
    after: Option<u64>,
    /// The epoch of the server process that the number is from.
    epoch: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionParams {
    session_key: SessionKey,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct NoParams {}

#[derive(Deserialize)]
struct SocketSendParams {
    session_key: SessionKey,
    #[serde(flatten)]
    message: NewSessionMessage,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SocketCommandParams {
    session_key: SessionKey,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SocketApproveParams {
    approval_id: String,
    decision: ApprovalDecision,
    reason: Option<String>,
    fingerprint: Option<String>,
}

/// Handles a frame of a peer. An invalid request is answered without an id.
pub async fn answer_frame(
    app: &AppState,
    by: AccessLevel,
    subscriptions: &mut SocketSubscriptions,
    text: &str,
) -> Message {
    match serde_json::from_str(text) {
        Ok(SocketRequest::Req { id, method, params }) => {
            let outcome = dispatch_method((app, by), subscriptions, &method, params).await;
            response_frame(&id, outcome, &app.engine.redactor())
        }
        Err(error) => {
            let malformed = Err(Error::MalformedJson(error.to_string()));
            response_frame(&Value::Null, malformed, &app.engine.redactor())
        }
    }
}

/// Whether a frame of a peer only subscribes or unsubscribes.
pub fn is_read_only(frame: &[u8]) -> bool {
    let Ok(SocketRequest::Req { method, .. }) = serde_json::from_slice(frame) else { return false };
    ["subscribe", "watch", "unsubscribe"].contains(&method.as_str())
}

async fn dispatch_method(
    (app, by): (&AppState, AccessLevel),
    open: &mut SocketSubscriptions,
    method: &str,
    params: Value,
) -> Result<Value> {
    match method {
        "subscribe" => {
            let wanted: SubscribeParams = parse_params(params)?;
            open.add_session(wanted.session_key, &StreamCursor { after: wanted.after, epoch: wanted.epoch })
        }
        "watch" => {
            let NoParams {} = parse_params(params)?;
            Ok(open.watch_all())
        }
        "unsubscribe" => {
            let wanted: SessionParams = parse_params(params)?;
            Ok(json!({ "unsubscribed": open.remove_session(&wanted.session_key) }))
        }
        "send" => {
            let text: SocketSendParams = parse_params(params)?;
            let inbound = messages::to_inbound(app, by, text.session_key, text.message).await?;
            let inbound = app.engine.resolve_addressee(inbound).await?;
            to_json(session_message_receipt(app.engine.submit_message(inbound).await?))
        }
        "stop" => {
            let wanted: SessionParams = parse_params(params)?;
            let stopped = app.engine.stop_session(&wanted.session_key).await?;
            Ok(json!({ "turn_id": stopped.turn, "interrupted_tasks": stopped.interrupted_tasks }))
        }
        "command" => {
            let command: SocketCommandParams = parse_params(params)?;
            to_json(commands::command_reply(app, by, &command.session_key, &command.text).await?)
        }
        "approve" => decide_approval(app, by, parse_params(params)?).await,
        other => Err(Error::UnknownMethod(other.chars().take(40).collect())),
    }
}

async fn decide_approval(app: &AppState, by: AccessLevel, verdict: SocketApproveParams) -> Result<Value> {
    let SocketApproveParams { approval_id, decision, reason, fingerprint } = verdict;
    let verdict = ApprovalDecisionBody { decision, reason, fingerprint };
    to_json(approvals::record_decision(app, by, &ApprovalId::new(approval_id), verdict).await?)
}

fn parse_params<T: DeserializeOwned>(params: Value) -> Result<T> {
    if params.is_array() {
        return Err(Error::InvalidBody("params must be an object, not a list".to_owned()));
    }
    serde_json::from_value(params)
        .map_err(|error| Error::InvalidBody(serde_errors::plain_message(&error.to_string())))
}

fn to_json(result: impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(result).map_err(|error| Error::InvalidBody(error.to_string()))
}
