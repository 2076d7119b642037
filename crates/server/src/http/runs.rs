//! Sub-agent and delegation runs, and completed ones whose announce waits for a person.

use axum::Json;
use axum::extract::State;
use polyclaw_api::runs::{ListRunsQuery, RunList, RunView};
use polyclaw_domain::id::RunId;

use crate::error::{Error, Result};
use crate::extract::{PathId, QueryParams};
use crate::state::AppState;

const DEFAULT_LISTED_RUNS: usize = 100;
const MAX_LISTED_RUNS: usize = 1_000;

/// Lists runs of a session, or runs that wait for a person.
/// Either `owner` or `held=true` is required.
#[utoipa::path(get, path = "/runs", tag = "sessions", params(ListRunsQuery), responses((status = 200, body = RunList)))]
pub async fn list_runs(
    State(app): State<AppState>,
    QueryParams(which): QueryParams<ListRunsQuery>,
) -> Result<Json<RunList>> {
    let limit = which.limit.unwrap_or(DEFAULT_LISTED_RUNS).clamp(1, MAX_LISTED_RUNS);
    let found = match (&which.owner, which.held) {
        (Some(owner), _) => app.engine.list_runs(owner, limit).await?,
        (None, Some(true)) => app.engine.list_held_announces(limit).await?,
        (None, _) => return Err(Error::invalid_field("owner", "required, unless held=true")),
    };
    Ok(Json(RunList { runs: found.into_iter().map(RunView::from).collect() }))
}

/// Returns a run, active or ended.
/// The result is available as long as the session that started the run exists.
#[utoipa::path(get, path = "/runs/{id}", tag = "sessions", params(("id" = String, Path)), responses((status = 200, body = RunView)))]
pub async fn show_run(State(app): State<AppState>, PathId(id): PathId) -> Result<Json<RunView>> {
    Ok(Json(app.engine.find_run(&RunId::new(id)).await?.into()))
}

/// Dismisses the announce of a run.
/// The result counts as read by a person; no turn is started for it.
#[utoipa::path(post, path = "/runs/{id}/dismiss", tag = "sessions", params(("id" = String, Path)), responses((status = 200, body = RunView)))]
pub async fn dismiss_run(State(app): State<AppState>, PathId(id): PathId) -> Result<Json<RunView>> {
    Ok(Json(app.engine.dismiss_announce(&RunId::new(id)).await?.into()))
}
