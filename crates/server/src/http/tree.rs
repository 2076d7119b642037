//! A session with all sessions started from it.

use axum::Json;
use axum::extract::State;
use polyclaw_api::tree::SessionNodeView;
use polyclaw_domain::time::Millis;
use polyclaw_engine::subagents::SessionNode;

use crate::error::Result;
use crate::extract::SessionKeyPath;
use crate::state::AppState;

fn session_node_view(branch: SessionNode, now: Millis) -> SessionNodeView {
    let (session, run) = (branch.session, branch.run);
    SessionNodeView {
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
        children: branch.children.into_iter().map(|child| session_node_view(child, now)).collect(),
    }
}

/// Returns the tree of sessions started from a session.
#[utoipa::path(get, path = "/sessions/{key}/tree", tag = "sessions", params(("key" = String, Path)), responses((status = 200, body = SessionNodeView)))]
pub async fn show_tree(
    State(app): State<AppState>,
    SessionKeyPath(key): SessionKeyPath,
) -> Result<Json<SessionNodeView>> {
    let tree = app.engine.session_tree(&key).await?;
    Ok(Json(session_node_view(tree, app.engine.now())))
}
