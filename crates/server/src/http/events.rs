//! The event log, for people and tools.

use axum::Json;
use axum::extract::State;
use polyclaw_api::events::{EventList, EventView, ListEventsQuery};
use polyclaw_store::Tx;
use polyclaw_store::events::{self, EventRecord};

use crate::error::Result;
use crate::extract::QueryParams;
use crate::paging::{PagePosition, PageRequest, page_size};
use crate::state::AppState;

pub fn event_view(event: EventRecord) -> EventView {
    EventView {
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
            events: found.into_iter().map(event_view).collect(),
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
    Ok(Json(EventList { events: found.into_iter().map(event_view).collect(), next_cursor }))
}
