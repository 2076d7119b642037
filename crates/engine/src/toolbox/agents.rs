//! `agents_list` and `session_set_agent`.

use polyclaw_domain::agent::{describe_spec, widened_fields};
use polyclaw_domain::tool::ToolScope;
use polyclaw_store::agents::StoredAgent;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ToolCallResult, ToolRefusal};
use crate::agent::find_agent_fuzzy;
use crate::core::Engine;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentsListArguments {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionSetAgentArguments {
    /// Agent id or name. A part that matches only one agent is enough.
    agent: String,
}

pub(super) async fn list(engine: &Engine, scope: &ToolScope) -> ToolCallResult {
    let active = engine.load_session(&scope.session).await.map(|session| session.active_agent).ok();
    let line = |stored: &StoredAgent| {
        let spec = &stored.spec;
        let mark = if Some(&spec.agent_id) == active.as_ref() { " (active in this session)" } else { "" };
        let model = spec.defaults.model.as_ref().map(|model| format!(" [{model}]")).unwrap_or_default();
        format!("{} \"{}\"{model}{mark}: {}", spec.agent_id, spec.name, spec.description)
    };
    Ok(engine.list_agents().await?.iter().map(line).collect::<Vec<_>>().join("\n"))
}

pub(super) async fn set_agent(
    engine: &Engine,
    scope: &ToolScope,
    SessionSetAgentArguments { agent }: SessionSetAgentArguments,
) -> ToolCallResult {
    let found = find_agent_fuzzy(&engine.list_agents().await?, &agent)?.spec.agent_id.clone();
    engine.set_session_agent(&scope.session, &found).await?;
    Ok(format!("{found} answers in this session from the next turn on."))
}

/// Returns the approval question for switching to an agent with more permissions. An agent must not be able to widen
/// its own permissions.
pub(super) async fn approval_question(
    engine: &Engine,
    scope: &ToolScope,
    SessionSetAgentArguments { agent }: SessionSetAgentArguments,
) -> std::result::Result<Option<String>, ToolRefusal> {
    let all = engine.list_agents().await?;
    let target = &find_agent_fuzzy(&all, &agent)?.spec;
    let own = all.iter().map(|stored| &stored.spec).find(|spec| spec.agent_id == scope.agent);
    let default = engine.settings().default_agent.clone();
    let more = match own {
        Some(own) if own.agent_id == target.agent_id => return Ok(None),
        Some(own) => widened_fields(own, target, &default),
        None => vec!["agent_id"],
    };
    Ok((!more.is_empty()).then(|| {
        format!(
            "Let another agent answer in this conversation. It may do MORE than {}: {}.\n{}",
            scope.agent,
            more.join(", "),
            describe_spec(target, &default)
        )
    }))
}
