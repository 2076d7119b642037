//! What the instance is doing, in numbers.

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
    sessions: i64,
    /// Turns that run, over all nodes.
    running: i64,
    /// Messages and interrupted tasks not yet taken up.
    waiting: i64,
    /// Unsafe settings, the gravest first.
    warnings: Vec<SettingWarning>,
}

/// An unsafe setting.
#[derive(Serialize, ToSchema)]
#[schema(as = SafetyWarning)]
pub struct SettingWarning {
    /// Stable, such as `running_as_root`.
    code: &'static str,
    message: String,
    /// What to do about it.
    hint: String,
}

/// How many sessions there are, and what goes on in them.
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
