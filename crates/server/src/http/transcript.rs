//! The transcript and the backlog of a session.

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
    /// The id of the message.
    #[schema(value_type = String)]
    id: MessageId,
    /// The position in the session.
    position: i64,
    /// The role of the message: `user`, `assistant` or `tool`.
    #[schema(value_type = String)]
    role: MessageRole,
    /// The text of the message.
    text: String,
    /// Tool calls, the call that a result belongs to, and attachments.
    #[schema(value_type = Vec<Object>)]
    parts: Vec<MessagePart>,
    /// Who or what wrote the message: `user`, `agent:<id>`, `agent:<instance>/<id>`, `cron`, `hook` or `system`.
    #[schema(value_type = String)]
    origin: MessageOrigin,
    /// The channel the message came from.
    channel: String,
    /// Whether the message is delivered to its channel.
    deliver: bool,
    /// Additional data, depending on the message.
    #[schema(value_type = Option<Object>)]
    meta: Option<Value>,
    /// The turn that the message belongs to.
    #[schema(value_type = String)]
    turn_id: TurnId,
    /// When the message was stored.
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
    /// Only messages after this position.
    after: Option<i64>,
    /// Page size. At most 1000, default 200.
    #[param(minimum = 1)]
    limit: Option<usize>,
}

#[derive(Serialize, ToSchema)]
pub struct TranscriptPage {
    /// The session.
    #[schema(value_type = String)]
    session_key: SessionKey,
    /// The messages of this page in order.
    messages: Vec<SessionMessageView>,
    /// `after` of the next page. Null on the last page.
    next_after: Option<i64>,
}

#[derive(Serialize, ToSchema)]
pub struct BacklogView {
    /// The session.
    #[schema(value_type = String)]
    session_key: SessionKey,
    /// Messages that wait for their turn to start.
    waiting: Vec<SessionMessageView>,
    /// Tasks that a newer message interrupted.
    interrupted: Vec<InterruptedTaskView>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = InterruptedTask)]
pub struct InterruptedTaskView {
    /// The message that started the task.
    #[schema(value_type = String)]
    message_id: MessageId,
    /// The turn that was interrupted.
    #[schema(value_type = String)]
    turn_id: TurnId,
    /// How often the task was interrupted.
    steer_count: u32,
    /// The text of the task.
    text: String,
    /// When the task was interrupted.
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
}

/// Returns a page of the messages since the session was last reset.
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
    // Stored messages are already redacted, but imported ones may not be.
    let redactor = app.engine.redactor();
    let clean = |mut message: SessionMessageView| {
        redactor.redact_in_place(&mut message.text);
        message
    };
    let messages = found.into_iter().map(|message| clean(SessionMessageView::from(message))).collect();
    Ok(Json(TranscriptPage { session_key: key, messages, next_after }))
}

/// Returns the messages and interrupted tasks that a session still has to handle.
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
