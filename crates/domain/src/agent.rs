//! AgentSpec: capability. Resolved on every turn, so an edit takes effect at the next one.

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
pub use workspace::{AgentWorkspace, default_agent_folder};

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
    /// What it remembers, and what of it comes into a turn.
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
    /// MCP servers of the instance whose tools it may be given, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<String>,
    /// What sub-agents it may begin.
    #[serde(default)]
    pub subagents: SubagentPolicy,
    /// Whom it may give work to. Nobody if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<DelegationPolicy>,
    /// Of the turns that wait in a lane, those of agents with a higher number start first.
    #[serde(default, skip_serializing_if = "is_default_priority")]
    #[schemars(range(min = -100, max = 100))]
    pub priority: i32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_default_priority(priority: &i32) -> bool {
    *priority == 0
}

/// What it remembers, and what of it comes into a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContextPolicy {
    /// Whether it remembers at all.
    pub memory: bool,
    /// Who else sees what it stores, and whose memories it sees.
    pub scope: MemoryScope,
    /// The most of a turn's context that remembered text may take, in tokens.
    #[schemars(range(max = 100_000))]
    pub recall_budget_tokens: u32,
    /// Only memories of these kinds come into a turn. All where none is named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
}

impl Default for ContextPolicy {
    fn default() -> Self {
        Self { memory: true, scope: MemoryScope::default(), recall_budget_tokens: 800, kinds: Vec::new() }
    }
}

/// Who sees a memory: every agent of the instance that shares, its own agent, or its own session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryScope {
    Shared,
    #[default]
    Agent,
    Session,
}

/// How an agent shows itself in chats.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentIdentity {
    /// The name it signs with; the agent's name if left out.
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
    /// Its emoji, if it has one, and its name.
    pub fn face(&self) -> String {
        let parts = [self.emoji.as_deref(), self.name.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// What can not be shown as it is said, by field.
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
            ("name", wrong(&self.name, &is_name), "a name is one line of 1 to 64 characters"),
            (
                "emoji",
                wrong(&self.emoji, &is_sign),
                "an emoji is one sign of at most 16 characters without blanks",
            ),
            (
                "avatar",
                wrong(&self.avatar, &is_picture),
                "an avatar is an http(s) address, or a file in the agent's workspace",
            ),
        ];
        found.into_iter().filter(|(_, is_wrong, _)| *is_wrong).map(|(field, _, why)| (field, why)).collect()
    }
}

/// Where its tools run: beside the engine, or in a worker process of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolIsolation {
    #[default]
    InProcess,
    Process,
}

/// What its programs are kept to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxSettings {
    /// How far its programs reach.
    pub mode: SandboxMode,
    /// Memory of all its processes together, in MiB.
    #[schemars(range(min = 16))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u32>,
    /// Processor time of one program, in seconds.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u32>,
    /// Processes and threads at once.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// The largest file it may write, in MiB.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_mb: Option<u32>,
    /// All that its workspace may hold, in MiB.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_mb: Option<u32>,
    /// Lets its programs listen for TCP connections in `workspace` mode. Other programs and web pages on this machine can
    /// then connect to them.
    #[serde(skip_serializing_if = "is_false")]
    pub listen: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// `workspace`: files of the workspace only. `strict`: no network either. `off`: what the daemon may, it may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    Off,
    #[default]
    Workspace,
    Strict,
}

/// What may be spent. Where nothing is said there is no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentBudget {
    /// Tokens in and out, in one day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// Dollars, in one day.
    #[schemars(range(min = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_per_day: Option<f64>,
    /// Dollars, for one turn.
    #[schemars(range(min = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_per_turn: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "model::ModelSettingsInput")]
pub struct ModelSettings {
    /// `provider/model`; the instance's default where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Tried in order when the model fails.
    pub fallbacks: Vec<ModelRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// How long the model thinks: `low`, `medium` or `high`; the provider's own default where nothing is said.
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

/// Which skills it is told of. Deny wins; an empty allow list allows every one that is found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SkillPolicy {
    /// Skills it is told of, by name; `*` stands for any text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Skills it is never told of.
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
