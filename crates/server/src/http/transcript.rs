//! What was said in a session, and what waits in it.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::id::{MessageId, TurnId};
use polyclaw_domain::message::{MessageOrigin, MessagePart, MessageRole};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::messages::{self, SessionMessage};
use polyclaw_store::{Tx, backlog as rows};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::error::Result;
use crate::extract::{QueryParams, SessionKeyPath};
use crate::paging::page_size;
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct SessionMessageView {
    #[schema(value_type = String)]
    id: MessageId,
    /// The place in the session.
    position: i64,
    /// `user`, `assistant` or `tool`.
    #[schema(value_type = String)]
    role: MessageRole,
    text: String,
    /// Tool calls, the call a result belongs to, attachments.
    #[schema(value_type = Vec<Object>)]
    parts: Vec<MessagePart>,
    /// `user`, `agent:<id>`, `cron`, `hook` or `system`.
    #[schema(value_type = String)]
    origin: MessageOrigin,
    channel: String,
    deliver: bool,
    #[schema(value_type = Option<Object>)]
    meta: Option<Value>,
    #[schema(value_type = String)]
    turn_id: TurnId,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
}

impl From<SessionMessage> for SessionMessageView {
    fn from(message: SessionMessage) -> Self {
        Self {
            id: message.id,
            position: message.position,
            role: message.role,
            text: message.text,
            parts: message.parts,
            origin: message.origin,
            channel: message.channel,
            deliver: message.deliver,
            meta: message.meta,
            turn_id: message.turn,
            created_at: message.created_at,
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TranscriptQuery {
    /// Messages behind this ticket.
    after: Option<i64>,
    /// At most 1000; 200 if not given.
    #[param(minimum = 1)]
    limit: Option<usize>,
}

#[derive(Serialize, ToSchema)]
pub struct TranscriptPage {
    #[schema(value_type = String)]
    session_key: SessionKey,
    messages: Vec<SessionMessageView>,
    /// `after` of the next page; null if this is the last.
    next_after: Option<i64>,
}

#[derive(Serialize, ToSchema)]
pub struct BacklogView {
    #[schema(value_type = String)]
    session_key: SessionKey,
    /// Messages of the turn that has not started.
    waiting: Vec<SessionMessageView>,
    /// Tasks a newer message interrupted.
    interrupted: Vec<InterruptedTaskView>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = InterruptedTask)]
pub struct InterruptedTaskView {
    /// The message that began it.
    #[schema(value_type = String)]
    message_id: MessageId,
    #[schema(value_type = String)]
    turn_id: TurnId,
    steer_count: u32,
    text: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
}

/// A page of what was said since the session was started anew.
#[utoipa::path(get, path = "/sessions/{key}/transcript", tag = "sessions", params(("key" = String, Path), TranscriptQuery), responses((status = 200, body = TranscriptPage)))]
pub async fn read_transcript(
    State(app): State<AppState>,
    SessionKeyPath(key): SessionKeyPath,
    QueryParams(after): QueryParams<TranscriptQuery>,
) -> Result<Json<TranscriptPage>> {
    let limit = page_size(after.limit, 200)?;
    let session = app.engine.load_session(&key).await?;
    let (wanted, after) = (key.clone(), after.after.unwrap_or(0));
    let read = move |tx: &mut Tx<'_>| messages::list_page(tx, &wanted, &session.id, after, limit + 1);
    let mut found = app.engine.db().read(read).await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next_after = found.last().filter(|_| more).map(|message| message.position);
    // What is stored was cleaned before; what was brought in from elsewhere may not have been.
    let redactor = app.engine.redactor();
    let clean = |mut message: SessionMessageView| {
        redactor.redact_in_place(&mut message.text);
        message
    };
    let messages = found.into_iter().map(|message| clean(SessionMessageView::from(message))).collect();
    Ok(Json(TranscriptPage { session_key: key, messages, next_after }))
}

/// What the session must still take up.
#[utoipa::path(get, path = "/sessions/{key}/backlog", tag = "sessions", params(("key" = String, Path)), responses((status = 200, body = BacklogView)))]
pub async fn show_backlog(
    State(app): State<AppState>,
    SessionKeyPath(key): SessionKeyPath,
) -> Result<Json<BacklogView>> {
    app.engine.load_session(&key).await?;
    let wanted = key.clone();
    let read =
        move |tx: &mut Tx<'_>| Ok((messages::list_waiting(tx, &wanted)?, rows::list_waiting(tx, &wanted)?));
    let (waiting, tasks) = app.engine.db().read(read).await?;
    let task = |row: rows::BacklogEntry| InterruptedTaskView {
        message_id: row.task.token.message_id,
        turn_id: row.task.token.turn_id,
        steer_count: row.task.token.steer_count,
        text: row.task.task,
        created_at: row.created_at,
    };
    Ok(Json(BacklogView {
        session_key: key,
        waiting: waiting.into_iter().map(SessionMessageView::from).collect(),
        interrupted: tasks.into_iter().map(task).collect(),
    }))
}
