//! The event log, for people and tools.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::Tx;
use polyclaw_store::events::{self, EventRecord};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::error::Result;
use crate::extract::QueryParams;
use crate::paging::{PagePosition, PageRequest, page_size};
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListEventsQuery {
    /// Only events after this sequence number. A cursor takes precedence.
    after: Option<i64>,
    /// Only the newest events, this many and in order; at most 1000. All other parameters are ignored.
    #[param(minimum = 1)]
    last: Option<usize>,
    /// Only events of this kind.
    kind: Option<String>,
    /// Only events of this session.
    #[param(value_type = Option<String>)]
    session: Option<SessionKey>,
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct EventList {
    /// The events in order.
    events: Vec<EventView>,
    /// The cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct EventView {
    /// The sequence number.
    seq: i64,
    /// The kind of event, such as `message.queued`.
    kind: String,
    /// The session it belongs to, if any.
    session_key: Option<String>,
    /// The turn it belongs to, if any.
    turn_id: Option<String>,
    /// The agent it belongs to, if any.
    agent_id: Option<String>,
    /// The trace it belongs to. A trace connects all turns caused by one message.
    trace_id: Option<String>,
    /// Details, depending on the kind.
    #[schema(value_type = Object)]
    data: Value,
    /// When the event happened.
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
}

impl From<EventRecord> for EventView {
    fn from(event: EventRecord) -> Self {
        Self {
            seq: event.seq,
            kind: event.kind,
            session_key: event.session,
            turn_id: event.turn,
            agent_id: event.agent,
            trace_id: event.trace,
            data: event.data,
            created_at: event.created_at,
        }
    }
}

/// Lists events, oldest first.
#[utoipa::path(get, path = "/events", tag = "instance", params(ListEventsQuery), responses((status = 200, body = EventList)))]
pub async fn list_events(
    State(app): State<AppState>,
    QueryParams(which): QueryParams<ListEventsQuery>,
) -> Result<Json<EventList>> {
    if let Some(last) = which.last {
        let last = page_size(Some(last), last)?;
        let found = app.engine.db().read(move |tx: &mut Tx<'_>| events::list_latest(tx, last)).await?;
        return Ok(Json(EventList {
            events: found.into_iter().map(EventView::from).collect(),
            next_cursor: None,
        }));
    }
    let paging = PageRequest::from_query("events", which.limit, which.cursor.as_deref())?;
    let after = paging.after.as_ref().map(|place| place.at).or(which.after).unwrap_or(0);
    let limit = paging.row_limit();
    let read =
        move |tx: &mut Tx<'_>| events::list(tx, after, which.kind.as_deref(), which.session.as_ref(), limit);
    let mut found = app.engine.db().read(read).await?;
    let next_cursor = paging.cut_page(&mut found, |event| PagePosition { at: event.seq, id: String::new() });
    Ok(Json(EventList { events: found.into_iter().map(EventView::from).collect(), next_cursor }))
}
