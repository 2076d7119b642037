//! Removal of unused sessions.

use axum::Json;
use axum::extract::State;
use polyclaw_api::cleanup::{CleanupRequest, CleanupResult, UnusedSessionView};
use polyclaw_engine::maintenance::CleanupMode;
use polyclaw_store::sessions::UnusedSession;

use crate::error::Result;
use crate::extract::JsonBody;
use crate::state::AppState;

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
