//! Tools, and which agents may use them.

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
    /// The name of the tool.
    name: String,
    /// The description of the tool that the model gets.
    description: String,
    /// The JSON Schema of the arguments.
    #[schema(value_type = Object)]
    parameters: Value,
    /// What a call changes: `pure` (nothing), `idempotent` (safe to repeat) or `effect`.
    #[schema(value_type = String)]
    effect: ToolEffect,
    /// The risk of a call: `low` or `high`.
    #[schema(value_type = String)]
    risk: ToolRisk,
    /// Whether a person must approve: `not_needed`, `ask_person`, or `by_call`, which the tool decides for each call.
    #[schema(value_type = String)]
    consent: ToolConsent,
    /// Whether the tool runs only inside the agent's sandbox.
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

/// A tool, whether the agent may use it, and the rule that decided.
#[derive(Serialize, ToSchema)]
pub struct ToolPolicyView {
    #[serde(flatten)]
    tool: ToolView,
    /// The agent that the decision is for.
    #[schema(value_type = String)]
    agent_id: AgentId,
    /// Whether the agent may use the tool.
    allowed: bool,
    /// Whether a person must approve each call.
    asks: bool,
    /// The rule that decided, such as `agent.deny`.
    rule: Option<String>,
    /// Where that rule is set.
    set_in: Option<String>,
    /// The config line that would change the decision.
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

/// The policy decision for a tool, with the decision of every layer in order.
#[derive(Serialize, ToSchema)]
pub struct ToolExplanationView {
    #[serde(flatten)]
    decision: ToolPolicyView,
    /// The decision of each policy layer, in order.
    layers: Vec<PolicyLayerView>,
}

#[derive(Serialize, ToSchema)]
pub struct PolicyLayerView {
    /// The policy layer: `instance`, `agent`, `risk`, `inherited`, `plan`, `subagents`, `sender` or `approval`.
    #[schema(value_type = String)]
    layer: PolicyLayer,
    /// Whether this layer allows the tool.
    allows: bool,
    /// The rule that decided in this layer.
    rule: String,
    /// Where that rule is set.
    set_in: Option<String>,
    /// The config line that would change it.
    change: Option<String>,
    /// The decision as a sentence.
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
    /// The agent. Defaults to the session's agent, else to the default agent.
    #[param(value_type = Option<String>)]
    agent: Option<AgentId>,
    /// The session. Defaults to a request of the owner in the agent's own session.
    #[param(value_type = Option<String>)]
    session: Option<SessionKey>,
}

#[derive(Serialize, ToSchema)]
pub struct ToolList {
    /// Every tool, with the policy decision for the agent.
    tools: Vec<ToolPolicyView>,
}

/// Lists every tool and whether an agent may use it.
#[utoipa::path(get, path = "/tools", tag = "agents", params(ToolScopeQuery), responses((status = 200, body = ToolList)))]
pub async fn list_tools(
    State(app): State<AppState>,
    QueryParams(place): QueryParams<ToolScopeQuery>,
) -> Result<Json<ToolList>> {
    let listed = app.engine.explain_tools(place.agent.as_ref(), place.session.as_ref()).await?;
    Ok(Json(ToolList { tools: listed.into_iter().map(ToolPolicyView::from).collect() }))
}

/// Explains why an agent may or may not use a tool.
/// Returns the decision of every policy layer, where it is set, and the config line that would change it. The
/// decision comes from the same code that real calls use.
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
