//! Runs: what sessions asked of sessions they began, and the announces of their ends that wait for a person.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::id::{AgentId, RunId, TraceId};
use polyclaw_domain::run::{RunKind, RunStatus, SubagentRun};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::error::{Error, Result};
use crate::extract::{PathId, QueryParams};
use crate::state::AppState;

const DEFAULT_LISTED_RUNS: usize = 100;
const MAX_LISTED_RUNS: usize = 1_000;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListRunsQuery {
    /// The session that asked for them, the newest first.
    #[param(value_type = Option<String>)]
    owner: Option<SessionKey>,
    /// Those of all sessions whose announce waits for a person, the oldest first.
    held: Option<bool>,
    /// At most 1000; 100 if not given.
    limit: Option<usize>,
}

#[derive(Serialize, ToSchema)]
pub struct RunList {
    runs: Vec<RunView>,
}

#[derive(Serialize, ToSchema)]
pub struct RunView {
    #[schema(value_type = String)]
    run_id: RunId,
    #[schema(value_type = String)]
    kind: RunKind,
    #[schema(value_type = String)]
    session_key: SessionKey,
    #[schema(value_type = String)]
    agent_id: AgentId,
    #[schema(value_type = String)]
    owner_session_key: SessionKey,
    #[schema(value_type = String)]
    caller_agent_id: AgentId,
    #[schema(value_type = String)]
    trace_id: TraceId,
    label: String,
    task: String,
    tags: Vec<String>,
    #[schema(value_type = String)]
    status: RunStatus,
    /// Why its announce waits for a person; null where it does not.
    held: Option<String>,
    result: Option<String>,
    error_code: Option<String>,
    /// Null where a provider did not say.
    tokens: Option<u64>,
    /// Null where no price is known.
    cost_usd: Option<f64>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Millis>,
}

impl From<SubagentRun> for RunView {
    fn from(run: SubagentRun) -> Self {
        let result = run.result;
        Self {
            run_id: run.id,
            kind: run.kind,
            session_key: run.child,
            agent_id: run.agent,
            owner_session_key: run.owner,
            caller_agent_id: run.caller,
            trace_id: run.trace,
            label: run.task.label,
            task: run.task.prompt,
            tags: run.task.tags,
            status: run.status,
            held: run.held,
            error_code: result.as_ref().and_then(|result| result.error_code.clone()),
            tokens: result.as_ref().and_then(|result| result.tokens),
            cost_usd: result.as_ref().and_then(|result| result.cost_usd),
            result: result.map(|result| result.text),
            created_at: run.created_at,
            ended_at: run.ended_at,
        }
    }
}

/// Name `owner` or `held`.
#[utoipa::path(get, path = "/runs", tag = "sessions", params(ListRunsQuery), responses((status = 200, body = RunList)))]
pub async fn list_runs(
    State(app): State<AppState>,
    QueryParams(which): QueryParams<ListRunsQuery>,
) -> Result<Json<RunList>> {
    let limit = which.limit.unwrap_or(DEFAULT_LISTED_RUNS).clamp(1, MAX_LISTED_RUNS);
    let found = match (&which.owner, which.held) {
        (Some(owner), _) => app.engine.list_runs(owner, limit).await?,
        (None, Some(true)) => app.engine.list_held_announces(limit).await?,
        (None, _) => return Err(Error::invalid_field("owner", "name it, or held=true")),
    };
    Ok(Json(RunList { runs: found.into_iter().map(RunView::from).collect() }))
}

/// At work or ended: its result can be asked for as long as its owner is there.
#[utoipa::path(get, path = "/runs/{id}", tag = "sessions", params(("id" = String, Path)), responses((status = 200, body = RunView)))]
pub async fn show_run(State(app): State<AppState>, PathId(id): PathId) -> Result<Json<RunView>> {
    Ok(Json(app.engine.find_run(&RunId::new(id)).await?.into()))
}

/// The announce of its end was read by a person: no turn is begun for it.
#[utoipa::path(post, path = "/runs/{id}/dismiss", tag = "sessions", params(("id" = String, Path)), responses((status = 200, body = RunView)))]
pub async fn dismiss_run(State(app): State<AppState>, PathId(id): PathId) -> Result<Json<RunView>> {
    Ok(Json(app.engine.dismiss_announce(&RunId::new(id)).await?.into()))
}
