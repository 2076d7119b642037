//! Counts of what the instance is doing.

use axum::Json;
use axum::extract::State;
use polyclaw_api::status::{SettingWarning, StatusView};
use polyclaw_domain::safety::SafetyWarning;
use polyclaw_store::sessions;

use crate::error::Result;
use crate::state::AppState;

/// Returns counts of sessions and turns, and warnings about unsafe settings.
#[utoipa::path(get, path = "/status", tag = "instance", responses((status = 200, body = StatusView)))]
pub async fn show_status(State(app): State<AppState>) -> Result<Json<StatusView>> {
    let counts = app.engine.db().read(sessions::get_counts).await?;
    let found = app.engine.safety_warnings().await?;
    let view = |found: SafetyWarning| SettingWarning {
        code: found.code.to_owned(),
        message: found.message,
        hint: found.hint,
    };
    Ok(Json(StatusView {
        sessions: counts.sessions,
        running: counts.running,
        waiting: counts.waiting,
        warnings: found.into_iter().map(view).collect(),
    }))
}
