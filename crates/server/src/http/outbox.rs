//! Outbound messages of channels, including held ones that a person must decide about.

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
    /// Only messages in this state: `pending`, `sending`, `sent`, `unknown` or `failed`.
    #[param(value_type = Option<String>)]
    state: Option<OutboxState>,
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct OutboxList {
    /// The messages of this page.
    outbox: Vec<OutboxMessageView>,
    /// The cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct OutboxMessageView {
    /// The id of the message.
    #[schema(value_type = String)]
    id: OutboxId,
    /// The session that sends it.
    #[schema(value_type = String)]
    session_key: SessionKey,
    /// The turn that sends it.
    #[schema(value_type = String)]
    turn_id: TurnId,
    /// The part number. Long replies are split into several messages.
    part: usize,
    /// The destination (channel, account, peer and thread), copied from the message this one answers.
    #[schema(value_type = Object)]
    address: ChatAddress,
    /// The text of the message.
    text: String,
    /// `pending`, `sending`, `sent`, `unknown` (it may or may not have arrived) or `failed`.
    #[schema(value_type = String)]
    state: OutboxState,
    /// How often sending was attempted.
    attempts: u32,
    /// The platform's id of the message, once known.
    platform_id: Option<String>,
    /// The last error.
    error: Option<String>,
    /// When sending is given up.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Millis,
    /// When the message was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    /// When the message was last changed.
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
    Ok(Json(OutboxList { outbox: found.into_iter().map(OutboxMessageView::from).collect(), next_cursor }))
}

/// Sends a held message again.
/// The recipient may get it twice.
#[utoipa::path(post, path = "/outbox/{id}/resend", tag = "outbox", params(("id" = String, Path)), responses((status = 200, body = OutboxMessageView)))]
pub async fn resend_outbox_message(
    State(app): State<AppState>,
    PathId(id): PathId,
) -> Result<Json<OutboxMessageView>> {
    let message = app.engine.resend_message(&OutboxId::new(id)).await?;
    Ok(Json(message.into()))
}

/// Discards a held message.
#[utoipa::path(post, path = "/outbox/{id}/dismiss", tag = "outbox", params(("id" = String, Path)), responses((status = 200, body = OutboxMessageView)))]
pub async fn dismiss_outbox_message(
    State(app): State<AppState>,
    PathId(id): PathId,
) -> Result<Json<OutboxMessageView>> {
    let message = app.engine.dismiss_message(&OutboxId::new(id)).await?;
    Ok(Json(message.into()))
}
