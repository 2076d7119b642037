//! Sending messages to a session: `POST /sessions/{key}/messages`.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polyclaw_api::messages::{NewSessionMessage, SessionMessageReceipt, TurnReply, WaitQuery};
use polyclaw_domain::channel::{ChatAddress, PULL_CHANNELS};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::TurnAnswer;
use polyclaw_engine::ingress::{AcceptedMessage, IngressMessage};

use crate::access::AccessLevel;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, MAX_MESSAGE_BYTES, QueryParams, SessionKeyPath};
use crate::http::attachments;
use crate::state::AppState;

pub const MAX_WAIT_SECONDS: f64 = 600.0;

pub fn wait_limit(query: &WaitQuery) -> Result<Option<Duration>> {
    match query.wait {
        None => Ok(None),
        Some(seconds) if (0.0..=MAX_WAIT_SECONDS).contains(&seconds) => {
            Ok(Some(Duration::from_secs_f64(seconds)))
        }
        Some(_) => Err(Error::invalid_field("wait", "must be a number of seconds from 0 to 600")),
    }
}

pub fn session_message_receipt(accepted: AcceptedMessage) -> SessionMessageReceipt {
    SessionMessageReceipt {
        message_id: accepted.message_id,
        session_key: accepted.session_key,
        turn_id: accepted.turn_id,
        duplicate: accepted.duplicate,
        waiting: accepted.waiting,
        reply: None,
    }
}

pub fn turn_reply(answer: TurnAnswer) -> TurnReply {
    TurnReply {
        message_id: answer.message_id,
        text: answer.text,
        state: answer.state,
        error_code: answer.error_code,
        finish_reason: answer.truncated.then(|| "length".to_owned()),
        model: answer.model,
        usage: answer.usage.into(),
    }
}

/// Sends a message to a session, which is created if needed.
#[utoipa::path(
    post, path = "/sessions/{key}/messages", tag = "sessions",
    params(("key" = String, Path, description = "Session key, percent-encoded"), WaitQuery),
    request_body = NewSessionMessage,
    responses(
        (status = 202, description = "Accepted and stored: it is answered even after a crash", body = SessionMessageReceipt),
        (status = 200, description = "Answered, if `wait` was given", body = SessionMessageReceipt),
    )
)]
pub async fn send_message(
    State(app): State<AppState>,
    by: AccessLevel,
    SessionKeyPath(key): SessionKeyPath,
    QueryParams(wait): QueryParams<WaitQuery>,
    JsonBody(message): JsonBody<NewSessionMessage, MAX_MESSAGE_BYTES>,
) -> Result<(StatusCode, Json<SessionMessageReceipt>)> {
    let limit = wait_limit(&wait)?;
    let inbound = to_inbound(&app, by, key, message).await?;
    accept_and_wait(&app, inbound, limit).await
}

/// Accepts a message and waits for its answer if requested.
pub async fn accept_and_wait(
    app: &AppState,
    inbound: IngressMessage,
    limit: Option<Duration>,
) -> Result<(StatusCode, Json<SessionMessageReceipt>)> {
    let inbound = app.engine.resolve_addressee(inbound).await?;
    let Some(limit) = limit else {
        let accepted = app.engine.submit_message(inbound).await?;
        return Ok((StatusCode::ACCEPTED, Json(session_message_receipt(accepted))));
    };
    // Subscribes before the message is accepted, so that the end of its turn is never missed.
    let (watch, named) = (app.engine.hub.subscribe(&inbound.session), inbound.session.clone());
    let accepted = app.engine.submit_message(inbound).await?;
    let (session, turn) = (&accepted.session_key, &accepted.turn_id);
    let answer = match *session == named {
        true => app.engine.wait_for_answer_with(watch, session, turn, limit).await?,
        false => app.engine.wait_for_answer(session, turn, limit).await?,
    };
    let status = if answer.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
    let receipt =
        SessionMessageReceipt { reply: answer.map(turn_reply), ..session_message_receipt(accepted) };
    Ok((status, Json(receipt)))
}

/// Returns the chat conversation of the session. The message is treated as sent from there, so that the outbox
/// delivers the answer reliably.
async fn reply_address(app: &AppState, key: &SessionKey) -> Result<ChatAddress> {
    let found = match app.engine.session_conversation(key).await {
        Err(polyclaw_engine::Error::UnknownSession(_)) => None,
        found => found?,
    };
    if let Ok(session) = app.engine.load_session(key).await
        && !(session.delivers && session.sends)
    {
        let message = "deliver: delivery is disabled for this session (deliver_policy, send_policy)";
        return Err(Error::InvalidBody(message.to_owned()));
    }
    found.ok_or_else(|| {
        Error::InvalidBody("deliver: this session has not received a message from a channel yet".to_owned())
    })
}

pub async fn to_inbound(
    app: &AppState,
    by: AccessLevel,
    key: SessionKey,
    message: NewSessionMessage,
) -> Result<IngressMessage> {
    let channel = message.channel.as_deref().unwrap_or("web");
    if !PULL_CHANNELS.contains(&channel) {
        return Err(Error::invalid_field("channel", "must be web, cli or api"));
    }
    let bound = || app.engine.agent_by_bindings(channel, "default", key.as_str());
    let agent = message.agent.or_else(|| key.agent_id()).unwrap_or_else(bound);
    let address = match message.deliver {
        true => reply_address(app, &key).await?,
        false => ChatAddress {
            channel: channel.to_owned(),
            account: "default".to_owned(),
            peer: key.to_string(),
            thread: None,
        },
    };
    // Stored with the message, so that it survives a crash and applies to any turn that continues the work.
    let mut meta = None;
    by.authority().write_to_meta(&mut meta);
    Ok(IngressMessage {
        meta,
        parts: attachments::parse_attachments(message.attachments)?,
        idempotency_key: message.idempotency_key,
        ..IngressMessage::from_person(key, agent, address, message.text)
    })
}
