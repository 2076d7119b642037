//! Agent specs: what an agent is and may do. A spec is resolved on every turn, so an edit takes effect at the next
//! turn.

mod file;
mod grants;
mod model;
mod question;
mod review;
mod subagents;
mod workspace;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::AgentId;
pub use crate::policy::ToolPolicy;
use crate::provider::{ModelRef, ReasoningEffort};
use crate::sanitize::is_hidden;
pub use file::{from_toml, to_toml};
pub use grants::{widened_fields, widens_permissions};
pub use model::ModelChoice;
pub use question::{describe_change, describe_spec};
pub use review::{SpecProblem, SpecReviewContext, review_spec};
pub use subagents::{DelegationPolicy, MemberTools, SubagentPolicy};
pub use workspace::{AgentWorkspace, OVERLAP_HINT, WorkspaceOverlap, default_agent_folder, find_overlaps};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    pub agent_id: AgentId,
    /// Unique among the agents of an instance.
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub defaults: ModelSettings,
    #[serde(default)]
    pub policy: AgentPolicy,
    /// What it remembers, and which memories are added to a turn.
    #[serde(default)]
    pub context_policy: ContextPolicy,
    /// Where its files are.
    #[serde(default)]
    pub workspace: AgentWorkspace,
    #[serde(default)]
    pub identity: AgentIdentity,
    #[serde(default)]
    pub isolation: ToolIsolation,
    #[serde(default)]
    pub sandbox: SandboxSettings,
    #[serde(default)]
    pub budget: AgentBudget,
    /// Names of the MCP servers whose tools it may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<String>,
    /// Rules and limits for its sub-agents.
    #[serde(default)]
    pub subagents: SubagentPolicy,
    /// Agents to which it may delegate. If omitted, it cannot delegate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<DelegationPolicy>,
    /// Among turns that wait in a lane, those of agents with a higher priority start first.
    #[serde(default, skip_serializing_if = "is_default_priority")]
    #[schemars(range(min = -100, max = 100))]
    pub priority: i32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_default_priority(priority: &i32) -> bool {
    *priority == 0
}

/// What it remembers, and which memories are added to a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContextPolicy {
    /// Whether it has a memory.
    pub memory: bool,
    /// Who shares its memories.
    pub scope: MemoryScope,
    /// Maximum tokens of recalled memories in a turn's context.
    #[schemars(range(max = 100_000))]
    pub recall_budget_tokens: u32,
    /// Recall only memories of these kinds. If empty, all kinds are recalled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
}

impl Default for ContextPolicy {
    fn default() -> Self {
        Self { memory: true, scope: MemoryScope::default(), recall_budget_tokens: 800, kinds: Vec::new() }
    }
}

/// Who sees a memory: all agents with scope `shared`, the agent itself, or its session only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryScope {
    Shared,
    #[default]
    Agent,
    Session,
}

/// Name and picture of an agent in chats.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentIdentity {
    /// The name it signs with. Defaults to the agent's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Shown before its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emoji: Option<String>,
    /// A URL, or a file in its workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avatar: Option<String>,
}

impl AgentIdentity {
    /// Returns the emoji, if set, and the name.
    pub fn face(&self) -> String {
        let parts = [self.emoji.as_deref(), self.name.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Returns the fields that cannot be displayed, each with the reason.
    pub fn find_problems(&self) -> Vec<(&'static str, &'static str)> {
        let is_plain = |text: &str| !text.chars().any(|c| c.is_control() || is_hidden(c));
        let is_name = |text: &str| is_plain(text) && !text.trim().is_empty() && text.chars().count() <= 64;
        let is_sign = |text: &str| {
            is_plain(text)
                && !text.is_empty()
                && text.chars().count() <= 16
                && !text.contains(char::is_whitespace)
        };
        let is_picture = |text: &str| {
            let is_url = text.starts_with("https://") || text.starts_with("http://");
            is_plain(text)
                && (is_url || !(text.contains(':') || text.starts_with('/') || text.contains("..")))
        };
        let wrong = |text: &Option<String>, is_right: &dyn Fn(&str) -> bool| {
            text.as_deref().is_some_and(|text| !is_right(text))
        };
        let found = [
            ("name", wrong(&self.name, &is_name), "a name must be one line of 1 to 64 characters"),
            (
                "emoji",
                wrong(&self.emoji, &is_sign),
                "an emoji must be one symbol of at most 16 characters without spaces",
            ),
            (
                "avatar",
                wrong(&self.avatar, &is_picture),
                "an avatar must be an http(s) URL or a file in the agent's workspace",
            ),
        ];
        found.into_iter().filter(|(_, is_wrong, _)| *is_wrong).map(|(field, _, why)| (field, why)).collect()
    }
}

/// Where its tools run: in the engine's process, or in a separate worker process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolIsolation {
    #[default]
    InProcess,
    Process,
}

/// Sandbox of the programs it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxSettings {
    /// What its programs can access.
    pub mode: SandboxMode,
    /// Memory of all its processes together, in MiB.
    #[schemars(range(min = 16))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u32>,
    /// CPU time of one program, in seconds.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u32>,
    /// Maximum number of processes and threads.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Maximum size of one file it writes, in MiB.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_mb: Option<u32>,
    /// Maximum size of its workspace, in MiB.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_mb: Option<u32>,
    /// Lets its programs listen for TCP connections in `workspace` mode. Other programs and web pages on this machine
    /// can then connect to them.
    #[serde(skip_serializing_if = "is_false")]
    pub listen: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// `workspace`: only files of the workspace. `strict`: no network either. `off`: everything the daemon can access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    Off,
    #[default]
    Workspace,
    Strict,
}

/// Spending limits. Omitted values are unlimited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentBudget {
    /// Input and output tokens per day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// US dollars per day.
    #[schemars(range(min = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_per_day: Option<f64>,
    /// US dollars per turn.
    #[schemars(range(min = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_per_turn: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "model::ModelSettingsInput")]
pub struct ModelSettings {
    /// The model, as `provider/model`. If omitted, the instance's default model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Models to try in order if the model fails.
    pub fallbacks: Vec<ModelRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// How much the model reasons: `low`, `medium` or `high`. If omitted, the provider's default applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentPolicy {
    #[serde(default)]
    pub tools: ToolPolicy,
    #[serde(default)]
    pub skills: SkillPolicy,
}

/// Which skills are listed in its prompt. Deny wins; an empty allow list allows every skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SkillPolicy {
    /// Skills by name; `*` matches any text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Skills that are never listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

impl AgentSpec {
    pub fn with_id(agent_id: AgentId) -> Self {
        Self {
            name: agent_id.to_string(),
            agent_id,
            description: String::new(),
            defaults: ModelSettings::default(),
            policy: AgentPolicy::default(),
            context_policy: ContextPolicy::default(),
            workspace: AgentWorkspace::default(),
            identity: AgentIdentity::default(),
            isolation: ToolIsolation::default(),
            sandbox: SandboxSettings::default(),
            budget: AgentBudget::default(),
            mcp: Vec::new(),
            subagents: SubagentPolicy::default(),
            delegation: None,
            priority: 0,
        }
    }
}
