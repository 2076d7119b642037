//! Past turns for operators: request, place and result of each. `turns` has their details.

use axum::Json;
use axum::extract::State;
use polyclaw_api::history::{ListHistoryQuery, PastTurnList, PastTurnView};
use polyclaw_domain::job::JobState;
use polyclaw_domain::time::Millis;
use polyclaw_store::Tx;
use polyclaw_store::turn_history::{PastTurn, PastTurnFilter, list_past_turns};

use crate::error::{Error, Result};
use crate::extract::QueryParams;
use crate::paging::{PagePosition, PageRequest};
use crate::state::AppState;

const DEFAULT_PAGE_SIZE: usize = 20;

/// Returns the filter and the page.
pub fn history_filter(query: ListHistoryQuery) -> Result<(PastTurnFilter, PageRequest)> {
    let paging =
        PageRequest::from_query("history", query.limit.or(Some(DEFAULT_PAGE_SIZE)), query.cursor.as_deref())?;
    let state = match query.status.as_deref() {
        Some(word) => {
            Some(JobState::parse(word).ok_or_else(|| Error::invalid_field("status", "unknown state"))?)
        }
        None => None,
    };
    let filter = PastTurnFilter {
        state,
        channel: query.channel,
        after: query.after,
        before: query.before,
        behind: paging.after.clone().map(|place| (Millis(place.at), place.id)),
        limit: paging.row_limit(),
    };
    Ok((filter, paging))
}

pub fn past_turn_list(mut rows: Vec<PastTurn>, paging: &PageRequest) -> PastTurnList {
    let next_cursor =
        paging.cut_page(&mut rows, |past| PagePosition { at: past.queued_at.0, id: past.turn.clone() });
    let tasks = rows.into_iter().map(past_turn_view).collect();
    PastTurnList { tasks, next_cursor, data_available: true, message: None }
}

pub fn unavailable_history(why: String) -> PastTurnList {
    PastTurnList { tasks: Vec::new(), next_cursor: None, data_available: false, message: Some(why) }
}

fn past_turn_view(past: PastTurn) -> PastTurnView {
    let duration_ms = past.started_at.zip(past.ended_at).map(|(from, to)| to.since(from));
    PastTurnView {
        id: past.turn,
        session_key: past.session,
        agent_id: past.agent,
        channel: past.channel,
        status: past.state.as_str().to_owned(),
        summary: past.request_excerpt,
        outcome: past.error.or(past.reply_excerpt),
        error_code: past.error_code,
        model: past.model,
        duration_ms,
        trace_id: past.trace,
        created_at: past.queued_at,
    }
}

/// Lists the past turns of this instance, newest first.
/// The control plane shows the same list.
#[utoipa::path(get, path = "/history", tag = "turns", params(ListHistoryQuery), responses((status = 200, body = PastTurnList)))]
pub async fn list_history(
    State(app): State<AppState>,
    QueryParams(which): QueryParams<ListHistoryQuery>,
) -> Result<Json<PastTurnList>> {
    let (filter, paging) = history_filter(which)?;
    let rows = app.engine.db().read(move |tx: &mut Tx<'_>| list_past_turns(tx, &filter)).await?;
    Ok(Json(past_turn_list(rows, &paging)))
}
