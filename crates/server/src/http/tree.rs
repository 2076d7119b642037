//! A session with all sessions started from it.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::id::{AgentId, RunId, TraceId};
use polyclaw_domain::job::JobLane;
use polyclaw_domain::run::RunStatus;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_engine::subagents::{SessionActivity, SessionNode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::Result;
use crate::extract::SessionKeyPath;
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct SessionNodeView {
    /// The session.
    #[schema(value_type = String)]
    session_key: SessionKey,
    /// The agent that answers in it.
    #[schema(value_type = String)]
    agent_id: AgentId,
    /// The label given by the session that started it, else the title.
    label: Option<String>,
    /// How many sub-agent spawns lie between this session and a person.
    depth: u32,
    /// The queue of its turns: `main`, `subagent`, `teammate`, `cron` or `internal_announce`.
    #[schema(value_type = String)]
    lane: JobLane,
    /// What the session is doing: `running`, `queued` or `idle`.
    #[schema(value_type = String)]
    state: SessionActivity,
    /// The run that the session works on, if any.
    #[schema(value_type = Option<String>)]
    run_id: Option<RunId>,
    /// `running`, `ok`, `error`, `timeout` or `cancelled`. Null if no other session started it.
    #[schema(value_type = Option<String>)]
    run_status: Option<RunStatus>,
    /// The trace of the run, else of the latest turn. A trace connects all turns caused by one message.
    #[schema(value_type = Option<String>)]
    trace_id: Option<TraceId>,
    /// Milliseconds since the session was created.
    age_ms: i64,
    /// Tokens used. Null if a provider did not report them, or none was called.
    tokens: Option<i64>,
    /// Sessions started from this one, in order of their start. Archived ones are omitted.
    #[schema(no_recursion)]
    children: Vec<SessionNodeView>,
}

impl SessionNodeView {
    fn from_branch(branch: SessionNode, now: Millis) -> Self {
        let (session, run) = (branch.session, branch.run);
        Self {
            session_key: session.key,
            agent_id: session.active_agent,
            label: run.as_ref().map(|run| run.task.label.clone()).or(session.title),
            depth: session.spawn_depth,
            lane: session.lane,
            state: branch.activity,
            run_id: run.as_ref().map(|run| run.id.clone()),
            run_status: run.as_ref().map(|run| run.status),
            trace_id: branch.trace,
            age_ms: now.since(session.created_at),
            tokens: branch.tokens,
            children: branch.children.into_iter().map(|child| Self::from_branch(child, now)).collect(),
        }
    }
}

/// Returns the tree of sessions started from a session.
#[utoipa::path(get, path = "/sessions/{key}/tree", tag = "sessions", params(("key" = String, Path)), responses((status = 200, body = SessionNodeView)))]
pub async fn show_tree(
    State(app): State<AppState>,
    SessionKeyPath(key): SessionKeyPath,
) -> Result<Json<SessionNodeView>> {
    let tree = app.engine.session_tree(&key).await?;
    Ok(Json(SessionNodeView::from_branch(tree, app.engine.now())))
}
