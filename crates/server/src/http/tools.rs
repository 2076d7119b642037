//! The tools of this instance.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::policy::{PolicyLayer, ToolPolicyReason};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolRisk, ToolSpec};
use polyclaw_engine::ToolExplanation;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::error::Result;
use crate::extract::{PathId, QueryParams};
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
    effect: ToolEffect,
    /// `low` or `high`.
    #[schema(value_type = String)]
    risk: ToolRisk,
    /// `not_needed`, `ask_person`, or `by_call`: the tool says so for each call.
    #[schema(value_type = String)]
    consent: ToolConsent,
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

/// A tool, whether the agent has it, and the rule that decided.
#[derive(Serialize, ToSchema)]
pub struct ToolPolicyView {
    #[serde(flatten)]
    tool: ToolView,
    #[schema(value_type = String)]
    agent_id: AgentId,
    allowed: bool,
    /// A person is asked before each call.
    asks: bool,
    /// The rule that decided, such as `agent.deny`.
    rule: Option<String>,
    /// Where it is set.
    set_in: Option<String>,
    /// The line that would change it.
    change: Option<String>,
}

impl From<ToolExplanation> for ToolPolicyView {
    fn from(explained: ToolExplanation) -> Self {
        let decided = explained.deciding_reason().cloned();
        Self {
            tool: explained.tool.as_ref().into(),
            agent_id: explained.agent,
            allowed: explained.allowed,
            asks: explained.requires_approval,
            rule: decided.as_ref().map(|reason| reason.rule.clone()),
            set_in: decided.as_ref().and_then(|reason| reason.set_in.clone()),
            change: decided.and_then(|reason| reason.change),
        }
    }
}

/// One tool with the word of every layer on it, in order.
#[derive(Serialize, ToSchema)]
pub struct ToolExplanationView {
    #[serde(flatten)]
    decision: ToolPolicyView,
    layers: Vec<PolicyLayerView>,
}

#[derive(Serialize, ToSchema)]
pub struct PolicyLayerView {
    /// `instance`, `agent`, `risk`, `subagents`, `sender` or `approval`.
    #[schema(value_type = String)]
    layer: PolicyLayer,
    allows: bool,
    rule: String,
    set_in: Option<String>,
    change: Option<String>,
    /// The same as a sentence.
    reason: String,
}

impl From<ToolPolicyReason> for PolicyLayerView {
    fn from(
        ToolPolicyReason { layer, allows, rule, set_in, change, reason: says }: ToolPolicyReason,
    ) -> Self {
        Self { layer, allows, rule, set_in, change, reason: says }
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ToolScopeQuery {
    /// The agent; the session's, else the default one.
    #[param(value_type = Option<String>)]
    agent: Option<AgentId>,
    /// The session; else as if the owner asked in the agent's own.
    #[param(value_type = Option<String>)]
    session: Option<SessionKey>,
}

#[derive(Serialize, ToSchema)]
pub struct ToolList {
    tools: Vec<ToolPolicyView>,
}

/// Every tool there is, and whether an agent has it.
#[utoipa::path(get, path = "/tools", tag = "agents", params(ToolScopeQuery), responses((status = 200, body = ToolList)))]
pub async fn list_tools(
    State(app): State<AppState>,
    QueryParams(place): QueryParams<ToolScopeQuery>,
) -> Result<Json<ToolList>> {
    let listed = app.engine.explain_tools(place.agent.as_ref(), place.session.as_ref()).await?;
    Ok(Json(ToolList { tools: listed.into_iter().map(ToolPolicyView::from).collect() }))
}

/// Which rule decides about a tool, by the function that decides: every layer, where it is set, and the line that
/// would change it.
#[utoipa::path(get, path = "/tools/{name}/explain", tag = "agents", params(("name" = String, Path), ToolScopeQuery), responses((status = 200, body = ToolExplanationView)))]
pub async fn explain_tool(
    State(app): State<AppState>,
    PathId(name): PathId,
    QueryParams(place): QueryParams<ToolScopeQuery>,
) -> Result<Json<ToolExplanationView>> {
    let explained = app.engine.explain_tool(&name, place.agent.as_ref(), place.session.as_ref()).await?;
    let layers = explained.layers.iter().cloned().map(PolicyLayerView::from).collect();
    Ok(Json(ToolExplanationView { layers, decision: explained.into() }))
}
