//! Counts of what the instance is doing.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::safety::SafetyWarning;
use polyclaw_store::sessions;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::Result;
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
#[schema(as = Counts)]
pub struct StatusView {
    /// The number of sessions.
    sessions: i64,
    /// Running turns, on all nodes.
    running: i64,
    /// Messages and interrupted tasks that wait to be handled.
    waiting: i64,
    /// Unsafe settings, most severe first.
    warnings: Vec<SettingWarning>,
}

/// An unsafe setting.
#[derive(Serialize, ToSchema)]
#[schema(as = SafetyWarning)]
pub struct SettingWarning {
    /// A stable code, such as `running_as_root`.
    code: &'static str,
    /// What is unsafe.
    message: String,
    /// How to fix it.
    hint: String,
}

/// Returns counts of sessions and turns, and warnings about unsafe settings.
#[utoipa::path(get, path = "/status", tag = "instance", responses((status = 200, body = StatusView)))]
pub async fn show_status(State(app): State<AppState>) -> Result<Json<StatusView>> {
    let counts = app.engine.db().read(sessions::get_counts).await?;
    let found = app.engine.safety_warnings().await?;
    let view =
        |found: SafetyWarning| SettingWarning { code: found.code, message: found.message, hint: found.hint };
    Ok(Json(StatusView {
        sessions: counts.sessions,
        running: counts.running,
        waiting: counts.waiting,
        warnings: found.into_iter().map(view).collect(),
    }))
}
