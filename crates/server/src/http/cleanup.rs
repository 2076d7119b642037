//! Removal of unused sessions.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_engine::maintenance::CleanupMode;
use polyclaw_store::sessions::UnusedSession;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::Result;
use crate::extract::JsonBody;
use crate::state::AppState;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CleanupRequest {
    /// Only report what would be removed.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Serialize, ToSchema)]
pub struct CleanupResult {
    /// Whether this was a dry run.
    dry_run: bool,
    /// The sessions that count as unused.
    unused: Vec<UnusedSessionView>,
    /// How many of them were removed. The others were used again meanwhile.
    removed: usize,
    /// Archive files removed because the archive exceeded its size limit.
    dropped_files: Vec<String>,
}

#[derive(Serialize, ToSchema)]
pub struct UnusedSessionView {
    /// The key of the session.
    #[schema(value_type = String)]
    session_key: SessionKey,
    /// The agent of the session.
    #[schema(value_type = String)]
    agent_id: AgentId,
    /// When the session was last used.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Millis,
    /// The rank among the sessions of its agent; the most recently used one is 1.
    place: usize,
}

/// Removes unused sessions as configured in `[session.maintenance]`.
/// Their transcripts are archived first.
#[utoipa::path(post, path = "/sessions/cleanup", tag = "sessions", request_body = CleanupRequest, responses((status = 200, body = CleanupResult)))]
pub async fn clean_up_sessions(
    State(app): State<AppState>,
    JsonBody(CleanupRequest { dry_run }): JsonBody<CleanupRequest>,
) -> Result<Json<CleanupResult>> {
    let cleanup =
        app.engine.clean_up_sessions(if dry_run { CleanupMode::Dry } else { CleanupMode::Real }).await?;
    if !dry_run {
        app.engine.record_cleanup(&cleanup).await;
    }
    let view = |one: UnusedSession| UnusedSessionView {
        session_key: one.key,
        agent_id: one.agent,
        updated_at: one.updated_at,
        place: one.rank,
    };
    Ok(Json(CleanupResult {
        dry_run,
        unused: cleanup.unused.into_iter().map(view).collect(),
        removed: cleanup.removed,
        dropped_files: cleanup.dropped_files,
    }))
}
