//! Sub-agent and delegation runs, and completed ones whose announce waits for a person.

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
    /// Only runs started by this session, newest first.
    #[param(value_type = Option<String>)]
    owner: Option<SessionKey>,
    /// With `true`, runs of all sessions whose announce waits for a person, oldest first.
    held: Option<bool>,
    /// The number of runs. At most 1000, default 100.
    limit: Option<usize>,
}

#[derive(Serialize, ToSchema)]
pub struct RunList {
    /// The runs.
    runs: Vec<RunView>,
}

#[derive(Serialize, ToSchema)]
pub struct RunView {
    /// The id of the run.
    #[schema(value_type = String)]
    run_id: RunId,
    /// `subagent` or `delegate`.
    #[schema(value_type = String)]
    kind: RunKind,
    /// The session of the run.
    #[schema(value_type = String)]
    session_key: SessionKey,
    /// The agent that does the work.
    #[schema(value_type = String)]
    agent_id: AgentId,
    /// The session that started the run.
    #[schema(value_type = String)]
    owner_session_key: SessionKey,
    /// The agent that started the run.
    #[schema(value_type = String)]
    caller_agent_id: AgentId,
    /// The trace of the run. A trace connects all turns caused by one message.
    #[schema(value_type = String)]
    trace_id: TraceId,
    /// A short name of the task.
    label: String,
    /// The task given to the agent.
    task: String,
    /// Tags given by the agent that started the run.
    tags: Vec<String>,
    /// `running`, `ok`, `error`, `timeout` or `cancelled`.
    #[schema(value_type = String)]
    status: RunStatus,
    /// Why the announce of the result waits for a person. Null if it does not.
    held: Option<String>,
    /// The result, once the run has ended.
    result: Option<String>,
    /// The code of the error, if the run failed.
    error_code: Option<String>,
    /// Tokens used. Null if a provider did not report them.
    tokens: Option<u64>,
    /// Cost in US dollars. Null if a price is unknown.
    cost_usd: Option<f64>,
    /// When the run was started.
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    /// When the run ended.
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
