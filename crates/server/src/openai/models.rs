//! `GET /v1/models`: every agent is a model.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::redact::quote_safely;
use polyclaw_store::agents::StoredAgent;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::extract::PathId;
use crate::state::AppState;

const MODEL_PREFIX: &str = "polyclaw/";

/// Returns the agent of a model name: `polyclaw/<agent>`, `<agent>`, or `polyclaw` for the default agent.
pub fn agent_for_model(app: &AppState, model: &str) -> Result<AgentId> {
    if model == "polyclaw" {
        return Ok(app.engine.settings().default_agent.clone());
    }
    let name = model.strip_prefix(MODEL_PREFIX).unwrap_or(model);
    AgentId::parse(name).map_err(|_| Error::UnknownModel(quote_safely(model)))
}

fn model_json(id: &str, stored: &StoredAgent) -> Value {
    json!({ "id": id, "object": "model", "created": stored.created_at.0 / 1000, "owned_by": "polyclaw" })
}

pub async fn list_models(State(app): State<AppState>) -> Result<Json<Value>> {
    let agents = app.engine.list_agents().await?;
    let named =
        agents.iter().map(|stored| model_json(&format!("{MODEL_PREFIX}{}", stored.spec.agent_id), stored));
    Ok(Json(json!({ "object": "list", "data": named.collect::<Vec<_>>() })))
}

pub async fn show_model(State(app): State<AppState>, PathId(model): PathId) -> Result<Json<Value>> {
    let stored = app.engine.load_agent(&agent_for_model(&app, &model)?).await?;
    Ok(Json(model_json(&model, &stored)))
}
