//! Outbound messages of channels, including held ones that a person must decide about.

use axum::Json;
use axum::extract::State;
use polyclaw_api::outbox::{ListOutboxQuery, OutboxList, OutboxMessageView};
use polyclaw_domain::id::OutboxId;
use polyclaw_store::Tx;
use polyclaw_store::outbox::{self, OutboxMessage};

use crate::error::Result;
use crate::extract::{PathId, QueryParams};
use crate::paging::{PagePosition, PageRequest};
use crate::state::AppState;

fn outbox_message_view(message: OutboxMessage) -> OutboxMessageView {
    OutboxMessageView {
        id: message.id,
        session_key: message.session,
        turn_id: message.turn,
        part: message.part,
        address: message.address,
        text: message.text,
        state: message.state,
        attempts: message.attempts,
        platform_id: message.platform_id,
        error: message.error,
        expires_at: message.expires_at,
        created_at: message.created_at,
        updated_at: message.updated_at,
    }
}

/// Lists outbound messages, oldest first.
#[utoipa::path(get, path = "/outbox", tag = "outbox", params(ListOutboxQuery), responses((status = 200, body = OutboxList)))]
pub async fn list_outbox(
    State(app): State<AppState>,
    QueryParams(which): QueryParams<ListOutboxQuery>,
) -> Result<Json<OutboxList>> {
    let paging = PageRequest::from_query("outbox", which.limit, which.cursor.as_deref())?;
    let (after, limit) = (paging.after.clone().unwrap_or_default().id, paging.row_limit());
    let read = move |tx: &mut Tx<'_>| outbox::list(tx, which.state, &after, limit);
    let mut found = app.engine.db().read(read).await?;
    let next_cursor =
        paging.cut_page(&mut found, |message| PagePosition { at: 0, id: message.id.to_string() });
    Ok(Json(OutboxList { outbox: found.into_iter().map(outbox_message_view).collect(), next_cursor }))
}

/// Sends a held message again.
/// The recipient may get it twice.
#[utoipa::path(post, path = "/outbox/{id}/resend", tag = "outbox", params(("id" = String, Path)), responses((status = 200, body = OutboxMessageView)))]
pub async fn resend_outbox_message(
    State(app): State<AppState>,
    PathId(id): PathId,
) -> Result<Json<OutboxMessageView>> {
    let message = app.engine.resend_message(&OutboxId::new(id)).await?;
    Ok(Json(outbox_message_view(message)))
}

/// Discards a held message.
#[utoipa::path(post, path = "/outbox/{id}/dismiss", tag = "outbox", params(("id" = String, Path)), responses((status = 200, body = OutboxMessageView)))]
pub async fn dismiss_outbox_message(
    State(app): State<AppState>,
    PathId(id): PathId,
) -> Result<Json<OutboxMessageView>> {
    let message = app.engine.dismiss_message(&OutboxId::new(id)).await?;
    Ok(Json(outbox_message_view(message)))
}
