//! Rules of an agent for sub-agents and delegation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::AgentId;
use crate::provider::{ModelRef, ReasoningEffort};
use crate::run::SpawnLimits;

/// Rules and limits for sub-agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubagentPolicy {
    /// The agents it may spawn: only itself if omitted, any if `*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_agents: Vec<String>,
    /// Maximum depth of nested sub-agents.
    #[schemars(range(min = 1, max = 5))]
    pub max_spawn_depth: u32,
    /// Maximum number of active sub-agents per session.
    #[schemars(range(min = 1, max = 20))]
    pub max_children_per_agent: u32,
    /// Maximum number of active sub-agents in all sessions of the agent together.
    #[schemars(range(min = 1, max = 1000))]
    pub max_concurrent: u32,
    /// Maximum run time of a sub-agent, in seconds.
    #[schemars(range(min = 1, max = 86_400))]
    pub run_timeout_seconds: u32,
    /// Delay after its end before a sub-agent's session is archived, in minutes.
    pub archive_after_minutes: u32,
    /// The model of sub-agents. Defaults to the model of their agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// How much the models of sub-agents reason. Defaults to the setting of their agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ReasoningEffort>,
    /// Which tools members of a team get that this agent leads.
    #[serde(skip_serializing_if = "MemberTools::is_default")]
    pub member_tools: MemberTools,
}

/// Where the tools of team members come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemberTools {
    /// At most the tools of the lead.
    #[default]
    Lead,
    /// The tools of their own agents, so that a lead which only coordinates can lead members that work.
    Own,
}

impl MemberTools {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for SubagentPolicy {
    fn default() -> Self {
        Self {
            allow_agents: Vec::new(),
            max_spawn_depth: 2,
            max_children_per_agent: 5,
            max_concurrent: 8,
            run_timeout_seconds: 900,
            archive_after_minutes: 60,
            model: None,
            thinking: None,
            member_tools: MemberTools::default(),
        }
    }
}

impl SubagentPolicy {
    pub fn spawn_limits(&self) -> SpawnLimits {
        SpawnLimits { depth: self.max_spawn_depth, children: self.max_children_per_agent }
    }

    /// Returns whether agent `own` may spawn agent `wanted`.
    pub fn allows_agent(&self, own: &AgentId, wanted: &AgentId) -> bool {
        own == wanted || lists_agent(&self.allow_agents, wanted)
    }
}

/// Agents to which it may delegate with `delegate_to_agent`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelegationPolicy {
    /// The agents; any local one if `*`. Remote agents only by name: `a2a:<name>` of `[a2a.remote.<name>]`.
    pub allow_agents: Vec<String>,
    /// Maximum number of active delegations in all sessions of the agent together.
    #[schemars(range(min = 1, max = 20))]
    #[serde(default = "default_max_concurrent")]
    pub max_concurrent: u32,
    /// Maximum depth of delegation: with 1, a delegate cannot delegate.
    #[schemars(range(min = 1, max = 5))]
    #[serde(default = "default_max_depth")]
    pub max_depth: u32,
}

impl DelegationPolicy {
    pub fn allows_agent(&self, wanted: &AgentId) -> bool {
        lists_agent(&self.allow_agents, wanted)
    }

    /// Returns whether the agent may delegate to the remote agent `a2a:<name>`: only if it is listed by name.
    pub fn allows_remote(&self, wanted: &str) -> bool {
        self.allow_agents.iter().any(|entry| entry == wanted)
    }
}

fn lists_agent(list: &[String], id: &AgentId) -> bool {
    list.iter().any(|entry| entry == "*" || entry == id.as_str())
}

fn default_max_depth() -> u32 {
    1
}

fn default_max_concurrent() -> u32 {
    2
}
