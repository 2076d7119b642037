//! `agent_create` and `agent_update`. Both always need a person's approval, which shows what the agent may do.

use polyclaw_domain::agent::{
    AgentSpec, ModelChoice, SkillPolicy, ToolPolicy, describe_change, describe_spec,
};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::patch::apply_patch;
use polyclaw_domain::policy::ToolProfile;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{ToolCallResult, ToolRefusal};
use crate::agent::same_name;
use crate::core::Engine;
use crate::error::Error;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentCreateArguments {
    /// Id in lower case: letters, digits, - and _.
    agent_id: AgentId,
    /// Display name. Defaults to the id.
    name: Option<String>,
    /// One sentence about what the agent is for.
    description: String,
    /// System prompt with the agent's instructions.
    system_prompt: Option<String>,
    /// provider/model. Defaults to the instance's model.
    model: Option<String>,
    /// Tool profile to start from.
    profile: Option<ToolProfile>,
    /// Allowed tools: names, groups such as group:fs, patterns with *. Defaults to all low-risk tools.
    allow_tools: Option<Vec<String>>,
    /// Tools it never gets.
    deny_tools: Option<Vec<String>>,
    /// Allowed skills. Defaults to all.
    allow_skills: Option<Vec<String>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentUpdateArguments {
    /// The agent to change.
    agent_id: AgentId,
    /// JSON merge patch of its spec, for example {"description": "…", "policy": {"tools": {"deny": ["shell"]}}}.
    patch: Map<String, Value>,
}

impl AgentCreateArguments {
    fn into_spec(self, engine: &Engine) -> std::result::Result<AgentSpec, ToolRefusal> {
        let model: Option<ModelChoice> = match self.model {
            Some(text) => Some(serde_json::from_value(Value::String(text))?),
            None => None,
        };
        let mut spec = engine.default_agent_spec(self.agent_id);
        spec.name = self.name.unwrap_or(spec.name);
        spec.description = self.description;
        spec.defaults.system_prompt = self.system_prompt;
        spec.defaults.model = model.map(|choice| choice.model);
        spec.policy.tools = ToolPolicy {
            profile: self.profile,
            allow: self.allow_tools.unwrap_or_default(),
            deny: self.deny_tools.unwrap_or_default(),
            ..ToolPolicy::default()
        };
        spec.policy.skills = SkillPolicy { allow: self.allow_skills.unwrap_or_default(), deny: Vec::new() };
        Ok(spec)
    }
}

pub(super) async fn create_question(
    engine: &Engine,
    draft: AgentCreateArguments,
) -> std::result::Result<String, ToolRefusal> {
    let spec = draft.into_spec(engine)?;
    engine.validate_agent_spec(&spec)?;
    let known = engine.list_agents().await?;
    if known.iter().any(|known| known.spec.agent_id == spec.agent_id) {
        return Err(Error::AgentExists(spec.agent_id.to_string()).into());
    }
    if let Some(refused) = same_name(&known, &spec) {
        return Err(refused.into());
    }
    Ok(format!("Create a new agent:\n{}", describe_spec(&spec, &engine.settings().default_agent)))
}

pub(super) async fn create_agent(engine: &Engine, draft: AgentCreateArguments) -> ToolCallResult {
    let stored = engine.create_agent(draft.into_spec(engine)?).await?;
    Ok(format!(
        "Agent {} created. Use session_set_agent to let it answer in this session.",
        stored.spec.agent_id
    ))
}

async fn patched_spec(
    engine: &Engine,
    update: AgentUpdateArguments,
) -> std::result::Result<(AgentSpec, AgentSpec), ToolRefusal> {
    let old = engine.load_editable_agent(&update.agent_id).await?.spec;
    let new = apply_patch(&old, "agent_id", Value::Object(update.patch)).map_err(Error::InvalidAgent)?;
    engine.validate_agent_spec(&new)?;
    engine.check_allowed_agents(&new, Some(&old)).await?;
    Ok((old, new))
}

pub(super) async fn update_question(
    engine: &Engine,
    update: AgentUpdateArguments,
) -> std::result::Result<String, ToolRefusal> {
    let (old, new) = patched_spec(engine, update).await?;
    Ok(describe_change(&old, &new, &engine.settings().default_agent))
}

pub(super) async fn update_agent(engine: &Engine, update: AgentUpdateArguments) -> ToolCallResult {
    let (_, new) = patched_spec(engine, update).await?;
    let stored = engine.update_agent(new).await?;
    Ok(format!("Agent {} updated. The change takes effect at its next turn.", stored.spec.agent_id))
}
