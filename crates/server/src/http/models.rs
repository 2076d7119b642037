//! The available models.

use axum::Json;
use axum::extract::State;
use polyclaw_api::models::{ModelList, ModelView};

use crate::state::AppState;

/// Lists the available models and the one in use.
#[utoipa::path(get, path = "/models", tag = "agents", responses((status = 200, body = ModelList)))]
pub async fn list_models(State(app): State<AppState>) -> Json<ModelList> {
    let models = app.engine.provider().list_models().await;
    Json(ModelList {
        models: models.into_iter().map(ModelView::from).collect(),
        default_model: app.engine.settings().default_model.clone(),
        in_use: app.engine.settings().no_model_hint.clone(),
    })
}
