//! The tools of this instance.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::tool::{Consent, Effect, Risk, ToolSpec};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::Result;
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct ToolView {
    name: String,
    description: String,
    /// JSON Schema of the arguments.
    #[schema(value_type = Object)]
    parameters: Value,
    /// `pure`, `idempotent` or `effect`.
    #[schema(value_type = String)]
    effect: Effect,
    /// `low` or `high`.
    #[schema(value_type = String)]
    risk: Risk,
    /// `not_needed` or `ask_person`.
    #[schema(value_type = String)]
    consent: Consent,
    /// It runs confined to what the agent's sandbox allows, or not at all.
    confined: bool,
}

impl From<&ToolSpec> for ToolView {
    fn from(tool: &ToolSpec) -> Self {
        Self {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
            effect: tool.effect,
            risk: tool.risk,
            consent: tool.consent,
            confined: tool.confined,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct Tools {
    tools: Vec<ToolView>,
}

/// What agents can be given.
#[utoipa::path(get, path = "/tools", tag = "agents", responses((status = 200, body = Tools)))]
pub async fn list(State(app): State<AppState>) -> Result<Json<Tools>> {
    let default = app.engine.settings().default_agent.clone();
    let listed = app.engine.tools_of(&default, None).await?;
    Ok(Json(Tools { tools: listed.into_iter().map(|(tool, _)| tool.as_ref().into()).collect() }))
}
