//! The models agents can use.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::provider::{ModelInfo, ModelRef, ModelStatus};
use serde::Serialize;
use utoipa::ToSchema;

use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct ModelList {
    models: Vec<ModelView>,
    /// Used by agents that name none of their own.
    #[schema(value_type = Option<String>)]
    default_model: Option<ModelRef>,
    /// Which model answers and where it was found, or what to set so that one does.
    in_use: String,
}

#[derive(Serialize, ToSchema)]
pub struct ModelView {
    #[schema(value_type = String)]
    model: ModelRef,
    /// Tokens; null where nobody said.
    context_window: Option<u64>,
    /// `ready`, `cooling`, `unreachable`, or `damaged`: its weights can not be loaded, and `polyclaw model pull` fetches
    /// them again.
    #[schema(value_type = String)]
    status: ModelStatus,
    /// A demo model: its answers have the right shape and are often wrong. Add a real one before you rely on it.
    demo: bool,
}

impl From<ModelInfo> for ModelView {
    fn from(info: ModelInfo) -> Self {
        Self { model: info.model, context_window: info.context_window, status: info.status, demo: info.demo }
    }
}

#[utoipa::path(get, path = "/models", tag = "agents", responses((status = 200, body = ModelList)))]
pub async fn list_models(State(app): State<AppState>) -> Json<ModelList> {
    let models = app.engine.provider().list_models().await;
    Json(ModelList {
        models: models.into_iter().map(ModelView::from).collect(),
        default_model: app.engine.settings().default_model.clone(),
        in_use: app.engine.settings().no_model_hint.clone(),
    })
}
