//! Past turns for operators: request, place and result of each. `turns` has their details.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::job::JobState;
use polyclaw_domain::time::Millis;
use polyclaw_store::Tx;
use polyclaw_store::turn_history::{PastTurn, PastTurnFilter, list_past_turns};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::error::{Error, Result};
use crate::extract::QueryParams;
use crate::paging::{PagePosition, PageRequest};
use crate::state::AppState;

const DEFAULT_PAGE_SIZE: usize = 20;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListHistoryQuery {
    /// Page size. At most 1000, default 20.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
    /// Only turns in this state: `queued`, `running`, `done`, `failed`, `cancelled` or `steered`.
    status: Option<String>,
    /// Only turns from this channel.
    channel: Option<String>,
    /// Only turns queued at or after this time.
    #[param(value_type = Option<String>, format = DateTime)]
    after: Option<Millis>,
    /// Only turns queued before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    before: Option<Millis>,
}

impl ListHistoryQuery {
    /// Returns the filter and the page.
    pub fn into_filter(self) -> Result<(PastTurnFilter, PageRequest)> {
        let paging = PageRequest::from_query(
            "history",
            self.limit.or(Some(DEFAULT_PAGE_SIZE)),
            self.cursor.as_deref(),
        )?;
        let state = match self.status.as_deref() {
            Some(word) => {
                Some(JobState::parse(word).ok_or_else(|| Error::invalid_field("status", "unknown state"))?)
            }
            None => None,
        };
        let filter = PastTurnFilter {
            state,
            channel: self.channel,
            after: self.after,
            before: self.before,
            behind: paging.after.clone().map(|place| (Millis(place.at), place.id)),
            limit: paging.row_limit(),
        };
        Ok((filter, paging))
    }
}

#[derive(Serialize, ToSchema)]
pub struct PastTurnList {
    /// The turns of this page.
    tasks: Vec<PastTurnView>,
    /// The cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
    /// Whether the history could be read.
    data_available: bool,
    /// Why the history could not be read.
    message: Option<String>,
}

impl PastTurnList {
    pub fn from_rows(mut rows: Vec<PastTurn>, paging: &PageRequest) -> Self {
        let next_cursor =
            paging.cut_page(&mut rows, |past| PagePosition { at: past.queued_at.0, id: past.turn.clone() });
        let tasks = rows.into_iter().map(PastTurnView::from).collect();
        Self { tasks, next_cursor, data_available: true, message: None }
    }

    pub fn unavailable(why: String) -> Self {
        Self { tasks: Vec::new(), next_cursor: None, data_available: false, message: Some(why) }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = PastTurn)]
pub struct PastTurnView {
    /// The id of the turn.
    id: String,
    /// The session of the turn.
    session_key: String,
    /// The agent that answered.
    agent_id: String,
    /// The channel the message came from.
    channel: Option<String>,
    /// The state of the turn: `queued`, `running`, `done`, `failed`, `cancelled` or `steered` (interrupted by a newer
    /// message).
    status: &'static str,
    /// The beginning of the message.
    summary: Option<String>,
    /// The beginning of the reply, or the error.
    outcome: Option<String>,
    /// The code of the error, if the turn failed.
    error_code: Option<String>,
    /// The model that answered.
    model: Option<String>,
    /// Milliseconds from start to end. Null while the turn has not ended.
    duration_ms: Option<i64>,
    /// The trace of the turn. A trace connects all turns caused by one message.
    trace_id: String,
    /// When the turn was queued.
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
}

impl From<PastTurn> for PastTurnView {
    fn from(past: PastTurn) -> Self {
        let duration_ms = past.started_at.zip(past.ended_at).map(|(from, to)| to.since(from));
        Self {
            id: past.turn,
            session_key: past.session,
            agent_id: past.agent,
            channel: past.channel,
            status: past.state.as_str(),
            summary: past.request_excerpt,
            outcome: past.error.or(past.reply_excerpt),
            error_code: past.error_code,
            model: past.model,
            duration_ms,
            trace_id: past.trace,
            created_at: past.queued_at,
        }
    }
}

/// Lists the past turns of this instance, newest first.
/// The control plane shows the same list.
#[utoipa::path(get, path = "/history", tag = "turns", params(ListHistoryQuery), responses((status = 200, body = PastTurnList)))]
pub async fn list_history(
    State(app): State<AppState>,
    QueryParams(which): QueryParams<ListHistoryQuery>,
) -> Result<Json<PastTurnList>> {
    let (filter, paging) = which.into_filter()?;
    let rows = app.engine.db().read(move |tx: &mut Tx<'_>| list_past_turns(tx, &filter)).await?;
    Ok(Json(PastTurnList::from_rows(rows, &paging)))
}
