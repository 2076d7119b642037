//! What sessions an agent may begin, and whom it may give work to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::AgentId;
use crate::provider::{ModelRef, ReasoningEffort};
use crate::run::SpawnLimits;

/// What sub-agents it may begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubagentPolicy {
    /// The agents they may be: itself alone if left out, any if `*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_agents: Vec<String>,
    /// How deep sub-agents of sub-agents go.
    #[schemars(range(min = 1, max = 5))]
    pub max_spawn_depth: u32,
    /// How many of one session work at once.
    #[schemars(range(min = 1, max = 20))]
    pub max_children_per_agent: u32,
    /// How many of the agent work at once, in all of its sessions together.
    #[schemars(range(min = 1, max = 1000))]
    pub max_concurrent: u32,
    /// How long one may work, in seconds.
    #[schemars(range(min = 1, max = 86_400))]
    pub run_timeout_seconds: u32,
    /// How long after its end a sub-agent's session is archived, in minutes.
    pub archive_after_minutes: u32,
    /// The model they use, if not their agent's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// How long their models think before they answer, if not as their agent says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ReasoningEffort>,
    /// Which tools members of a team that it leads have.
    #[serde(skip_serializing_if = "MemberTools::is_default")]
    pub member_tools: MemberTools,
}

/// Where the tools of a team's members come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemberTools {
    /// No more than the lead has itself.
    #[default]
    Lead,
    /// Those of their own agents: a lead that only coordinates can lead members that work.
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

    /// Whether `own` may begin sub-agents that are `wanted`.
    pub fn allows_agent(&self, own: &AgentId, wanted: &AgentId) -> bool {
        own == wanted || lists_agent(&self.allow_agents, wanted)
    }
}

/// Whom it may give work to with `delegate_to_agent`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelegationPolicy {
    /// The agents; any if `*`. Agents elsewhere only by name: `a2a:<name>` of `[a2a.remote.<name>]`.
    pub allow_agents: Vec<String>,
    /// How many delegations of the agent work at once, in all of its sessions together.
    #[schemars(range(min = 1, max = 20))]
    #[serde(default = "default_max_concurrent")]
    pub max_concurrent: u32,
    /// How often work may be given on: with 1 a delegate cannot delegate.
    #[schemars(range(min = 1, max = 5))]
    #[serde(default = "default_max_depth")]
    pub max_depth: u32,
}

impl DelegationPolicy {
    pub fn allows_agent(&self, wanted: &AgentId) -> bool {
        lists_agent(&self.allow_agents, wanted)
    }

    /// Whether work may leave the instance to this agent, `a2a:<name>`: only where it is named.
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
