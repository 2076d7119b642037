//! A session with everything that was begun from it.

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
    #[schema(value_type = String)]
    session_key: SessionKey,
    #[schema(value_type = String)]
    agent_id: AgentId,
    /// What its owner called it.
    label: Option<String>,
    depth: u32,
    #[schema(value_type = String)]
    lane: JobLane,
    /// `running`, `queued` or `idle`.
    #[schema(value_type = String)]
    state: SessionActivity,
    #[schema(value_type = Option<String>)]
    run_id: Option<RunId>,
    /// `running`, `ok`, `error`, `timeout` or `cancelled`; null where nobody asked for it.
    #[schema(value_type = Option<String>)]
    run_status: Option<RunStatus>,
    #[schema(value_type = Option<String>)]
    trace_id: Option<TraceId>,
    age_ms: i64,
    /// Null where a provider did not say, or none was asked.
    tokens: Option<i64>,
    /// In the order in which they were begun; archived ones are not here.
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

/// What goes on below a session, whole.
#[utoipa::path(get, path = "/sessions/{key}/tree", tag = "sessions", params(("key" = String, Path)), responses((status = 200, body = SessionNodeView)))]
pub async fn show_tree(
    State(app): State<AppState>,
    SessionKeyPath(key): SessionKeyPath,
) -> Result<Json<SessionNodeView>> {
    let tree = app.engine.session_tree(&key).await?;
    Ok(Json(SessionNodeView::from_branch(tree, app.engine.now())))
}
