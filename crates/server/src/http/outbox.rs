//! Messages on their way to a channel, and the held ones a person decides about.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::delivery::OutboxState;
use polyclaw_domain::id::{OutboxId, TurnId};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::Tx;
use polyclaw_store::outbox::{self, OutboxMessage};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::error::Result;
use crate::extract::{PathId, QueryParams};
use crate::paging::{PagePosition, PageRequest};
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListOutboxQuery {
    /// `pending`, `sending`, `sent`, `unknown` or `failed`.
    #[param(value_type = Option<String>)]
    state: Option<OutboxState>,
    /// At most 1000; 100 if not given.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct OutboxList {
    outbox: Vec<OutboxMessageView>,
    /// Null on the last page.
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct OutboxMessageView {
    #[schema(value_type = String)]
    id: OutboxId,
    #[schema(value_type = String)]
    session_key: SessionKey,
    #[schema(value_type = String)]
    turn_id: TurnId,
    part: usize,
    /// Channel, account, peer and thread, taken whole from the message this answers.
    #[schema(value_type = Object)]
    address: ChatAddress,
    text: String,
    #[schema(value_type = String)]
    state: OutboxState,
    attempts: u32,
    platform_id: Option<String>,
    error: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Millis,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Millis,
}

impl From<OutboxMessage> for OutboxMessageView {
    fn from(message: OutboxMessage) -> Self {
        Self {
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
}

/// Oldest first.
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
    Ok(Json(OutboxList { outbox: found.into_iter().map(OutboxMessageView::from).collect(), next_cursor }))
}

/// Sends a held message again: it may arrive twice.
#[utoipa::path(post, path = "/outbox/{id}/resend", tag = "outbox", params(("id" = String, Path)), responses((status = 200, body = OutboxMessageView)))]
pub async fn resend_outbox_message(
    State(app): State<AppState>,
    PathId(id): PathId,
) -> Result<Json<OutboxMessageView>> {
    let message = app.engine.resend_message(&OutboxId::new(id)).await?;
    Ok(Json(message.into()))
}

/// Gives a held message up.
#[utoipa::path(post, path = "/outbox/{id}/dismiss", tag = "outbox", params(("id" = String, Path)), responses((status = 200, body = OutboxMessageView)))]
pub async fn dismiss_outbox_message(
    State(app): State<AppState>,
    PathId(id): PathId,
) -> Result<Json<OutboxMessageView>> {
    let message = app.engine.dismiss_message(&OutboxId::new(id)).await?;
    Ok(Json(message.into()))
}
