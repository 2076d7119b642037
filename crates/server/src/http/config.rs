//! Reloads the config of the running instance.

use axum::Json;
use axum::extract::State;
use polyclaw_api::config::ConfigReloadResult;

use crate::error::{Error, Result};
use crate::state::AppState;

/// Reloads the config file.
/// If it is invalid, nothing changes and the old config stays in use.
#[utoipa::path(post, path = "/config/reload", tag = "instance", responses((status = 200, body = ConfigReloadResult)))]
pub async fn reload_config(State(app): State<AppState>) -> Result<Json<ConfigReloadResult>> {
    let restart_required = app.reload.reload_config().await.map_err(Error::ConfigRefused)?;
    let restart_required = restart_required.into_iter().map(str::to_owned).collect();
    Ok(Json(ConfigReloadResult { restart_required }))
}
