//! The available models.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::provider::{ModelInfo, ModelRef, ModelStatus};
use serde::Serialize;
use utoipa::ToSchema;

use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct ModelList {
    /// The available models.
    models: Vec<ModelView>,
    /// The model of agents that have none of their own.
    #[schema(value_type = Option<String>)]
    default_model: Option<ModelRef>,
    /// The model in use and where it was found, or how to configure one.
    in_use: String,
}

#[derive(Serialize, ToSchema)]
pub struct ModelView {
    /// The model as `provider/model`.
    #[schema(value_type = String)]
    model: ModelRef,
    /// The context window in tokens. Null if unknown.
    context_window: Option<u64>,
    /// `ready`, `cooling` (paused after errors), `unreachable`, or `damaged`: the model files cannot be loaded;
    /// `polyclaw model pull` downloads them again.
    #[schema(value_type = String)]
    status: ModelStatus,
    /// A demo model. Its answers have the right format but are often wrong; configure a real model for serious use.
    demo: bool,
}

impl From<ModelInfo> for ModelView {
    fn from(info: ModelInfo) -> Self {
        Self { model: info.model, context_window: info.context_window, status: info.status, demo: info.demo }
    }
}

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
