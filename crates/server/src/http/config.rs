//! Reloads the config of the running instance.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct ConfigReloadResult {
    /// Sections that take effect at the next start. All others apply from the next turn.
    #[schema(value_type = Vec<String>)]
    restart_required: Vec<&'static str>,
}

/// Reloads the config file.
/// If it is invalid, nothing changes and the old config stays in use.
#[utoipa::path(post, path = "/config/reload", tag = "instance", responses((status = 200, body = ConfigReloadResult)))]
pub async fn reload_config(State(app): State<AppState>) -> Result<Json<ConfigReloadResult>> {
    let restart_required = app.reload.reload_config().await.map_err(Error::ConfigRefused)?;
    Ok(Json(ConfigReloadResult { restart_required }))
}
