//! The available models.

use polyclaw_domain::provider::{ModelInfo, ModelRef, ModelStatus};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ModelList {
    /// The available models.
    pub models: Vec<ModelView>,
    /// The model of agents that have none of their own.
    #[schema(value_type = Option<String>)]
    pub default_model: Option<ModelRef>,
    /// The model in use and where it was found, or how to configure one.
    pub in_use: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ModelView {
    /// The model as `provider/model`.
    #[schema(value_type = String)]
    pub model: ModelRef,
    /// The context window in tokens. Null if unknown.
    pub context_window: Option<u64>,
    /// `ready`, `cooling` (paused after errors), `unreachable`, or `damaged`: the model files cannot be loaded;
    /// `polyclaw model pull` downloads them again.
    #[schema(value_type = String)]
    pub status: ModelStatus,
    /// A demo model. Its answers have the right format but are often wrong; configure a real model for serious use.
    pub demo: bool,
}

impl From<ModelInfo> for ModelView {
    fn from(info: ModelInfo) -> Self {
        Self { model: info.model, context_window: info.context_window, status: info.status, demo: info.demo }
    }
}
