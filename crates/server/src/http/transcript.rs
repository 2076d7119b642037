//! The transcript and the backlog of a session.

use axum::Json;
use axum::extract::State;
use polyclaw_api::transcript::{
    BacklogView, InterruptedTaskView, SessionMessageView, TranscriptPage, TranscriptQuery,
};
use polyclaw_store::messages::{self, SessionMessage};
use polyclaw_store::{Tx, backlog as rows};

use crate::error::Result;
use crate::extract::{QueryParams, SessionKeyPath};
use crate::paging::page_size;
use crate::state::AppState;

pub fn session_message_view(message: SessionMessage) -> SessionMessageView {
    SessionMessageView {
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
    let messages = found.into_iter().map(|message| clean(session_message_view(message))).collect();
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
        waiting: waiting.into_iter().map(session_message_view).collect(),
        interrupted: tasks.into_iter().map(task).collect(),
    }))
}
