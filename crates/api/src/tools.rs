//! Tools, and which agents may use them.

use polyclaw_domain::id::AgentId;
use polyclaw_domain::policy::{PolicyLayer, ToolPolicyReason};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolRisk, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ToolView {
    /// The name of the tool.
    pub name: String,
    /// The description of the tool that the model gets.
    pub description: String,
    /// The JSON Schema of the arguments.
    #[schema(value_type = Object)]
    pub parameters: Value,
    /// What a call changes: `pure` (nothing), `idempotent` (safe to repeat) or `effect`.
    #[schema(value_type = String)]
    pub effect: ToolEffect,
    /// The risk of a call: `low` or `high`.
    #[schema(value_type = String)]
    pub risk: ToolRisk,
    /// Whether a person must approve: `not_needed`, `ask_person`, or `by_call`, which the tool decides for each call.
    #[schema(value_type = String)]
    pub consent: ToolConsent,
    /// Whether the tool runs only inside the agent's sandbox.
    pub confined: bool,
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
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ToolPolicyView {
    #[serde(flatten)]
    pub tool: ToolView,
    /// The agent that the decision is for.
    #[schema(value_type = String)]
    pub agent_id: AgentId,
    /// Whether the agent may use the tool.
    pub allowed: bool,
    /// Whether a person must approve each call.
    pub asks: bool,
    /// The rule that decided, such as `agent.deny`.
    pub rule: Option<String>,
    /// Where that rule is set.
    pub set_in: Option<String>,
    /// The config line that would change the decision.
    pub change: Option<String>,
}

/// The policy decision for a tool, with the decision of every layer in order.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ToolExplanationView {
    #[serde(flatten)]
    pub decision: ToolPolicyView,
    /// The decision of each policy layer, in order.
    pub layers: Vec<PolicyLayerView>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct PolicyLayerView {
    /// The policy layer: `instance`, `agent`, `risk`, `inherited`, `plan`, `subagents`, `sender` or `approval`.
    #[schema(value_type = String)]
    pub layer: PolicyLayer,
    /// Whether this layer allows the tool.
    pub allows: bool,
    /// The rule that decided in this layer.
    pub rule: String,
    /// Where that rule is set.
    pub set_in: Option<String>,
    /// The config line that would change it.
    pub change: Option<String>,
    /// The decision as a sentence.
    pub reason: String,
}

impl From<ToolPolicyReason> for PolicyLayerView {
    fn from(
        ToolPolicyReason { layer, allows, rule, set_in, change, reason: says }: ToolPolicyReason,
    ) -> Self {
        Self { layer, allows, rule, set_in, change, reason: says }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ToolScopeQuery {
    /// The agent. Defaults to the session's agent, else to the default agent.
    #[param(value_type = Option<String>)]
    pub agent: Option<AgentId>,
    /// The session. Defaults to a request of the owner in the agent's own session.
    #[param(value_type = Option<String>)]
    pub session: Option<SessionKey>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ToolList {
    /// Every tool, with the policy decision for the agent.
    pub tools: Vec<ToolPolicyView>,
}
