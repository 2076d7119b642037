//! Tools: what a model may call, what effect a call can have, and the port that runs one.

pub mod arguments;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::{AgentSpec, ContextPolicy, SandboxSettings, SkillPolicy, ToolIsolation};
use crate::authority::Authority;
use crate::id::{AgentId, TurnId};
use crate::media::Image;
use crate::port::BoxFuture;
use crate::sandbox::SandboxFacts;
use crate::session::Session;
use crate::session_key::SessionKey;
use crate::team::TeamRole;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Chosen by the model, unique within its turn. The result carries the same id.
    pub id: String,
    pub name: String,
    pub arguments: Value,
}

/// Whether a call may be repeated, and so what a restart does with a call that has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    /// Only reads: run it again.
    Pure,
    /// A second run changes nothing more: run it again.
    Idempotent,
    /// Every run has a side effect: never run it again, report the outcome as unknown to the model.
    Effect,
}

impl ToolEffect {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Idempotent => "idempotent",
            Self::Effect => "effect",
        }
    }

    pub fn may_run_again(self) -> bool {
        self != Self::Effect
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolRisk {
    Low,
    High,
}

/// Whether a call needs approval by a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolConsent {
    NotNeeded,
    /// Unsafe by default; settings may waive the approval.
    AskPerson,
    /// The tool decides per call, and no setting waives it.
    ByCall,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    pub effect: ToolEffect,
    pub risk: ToolRisk,
    pub consent: ToolConsent,
    /// The tool runs inside the sandbox of its scope or not at all.
    pub confined: bool,
}

/// The session and agent for which tools are listed and run. Both use the same value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolScope {
    pub agent: AgentId,
    pub session: SessionKey,
    /// Files are read and written only below this folder.
    pub workspace: PathBuf,
    /// The session has a conversation in which a person can be asked.
    pub can_ask: bool,
    /// What the agent remembers, and who sees it.
    pub memory: ContextPolicy,
    /// Skills that the agent may read.
    pub skills: SkillPolicy,
    /// Whether the agent has its own files and skills besides those of its workspace.
    pub overlay: bool,
    /// Names of the MCP servers whose tools the agent may use.
    pub mcp: Vec<String>,
    pub isolation: ToolIsolation,
    pub sandbox: SandboxSettings,
    /// The session may spawn sub-agents: its depth is below the maximum.
    pub spawns: bool,
    /// The agent may delegate to others.
    pub delegates: bool,
    /// Its role in a team.
    #[serde(default)]
    pub team_role: Option<TeamRole>,
    /// The lowest authority among the people for whom the turn works.
    pub authority: Authority,
}

impl ToolScope {
    /// Returns the scope of an agent's spec in one session. `folder` holds the agent's files.
    pub fn for_session(spec: &AgentSpec, session: SessionKey, folder: &Path, can_ask: bool) -> Self {
        Self {
            agent: spec.agent_id.clone(),
            session,
            workspace: folder.to_owned(),
            can_ask,
            memory: spec.context_policy.clone(),
            skills: spec.policy.skills.clone(),
            overlay: spec.workspace.overlay,
            mcp: spec.mcp.clone(),
            isolation: spec.isolation,
            sandbox: spec.sandbox.clone(),
            spawns: true,
            delegates: spec.delegation.is_some(),
            team_role: None,
            authority: Authority::Owner,
        }
    }

    /// Narrows the scope for a child session: its depth decides whether it may spawn and delegate, and its sandbox is
    /// at least as strict as that of its parent.
    pub fn for_child_session(self, spec: &AgentSpec, session: &Session) -> Self {
        let delegates =
            spec.delegation.as_ref().is_some_and(|rules| session.delegation_depth < rules.max_depth);
        let spawns = session.spawn_depth < spec.subagents.max_spawn_depth;
        let mode = session.inherited.as_ref().map_or(self.sandbox.mode, |inherited| inherited.sandbox);
        let sandbox = SandboxSettings { mode: self.sandbox.mode.max(mode), ..self.sandbox.clone() };
        Self { spawns, delegates, sandbox, team_role: session.team_role, ..self }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutcome {
    pub content: String,
    pub is_error: bool,
    /// Images of the result, each with its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<(String, Image)>,
    /// The confinement that was in force, as measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<SandboxFacts>,
}

impl ToolOutcome {
    pub fn ok(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: false, images: Vec::new(), facts: None }
    }

    pub fn error(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: true, images: Vec::new(), facts: None }
    }
}

/// Receives pieces of output while a tool runs. The engine counts them as progress and shows them.
pub type ProgressSink<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// What a tool asks about one call before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolQuestion {
    /// The policy alone decides whether a person is asked.
    None,
    /// A person must approve this description of the call.
    Ask(String),
    /// The call cannot run.
    Refuse(ToolOutcome),
}

/// Runs tools. `policy` decides which of the listed tools a turn has; the engine calls no other.
pub trait Toolbox: Send + Sync {
    fn list_tools(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>>;

    /// Checks a call of a tool whose consent is [`ToolConsent::ByCall`] before it runs.
    fn assess_call<'a>(&'a self, _: &'a ToolScope, _: &'a ToolCall) -> BoxFuture<'a, ToolQuestion> {
        Box::pin(std::future::ready(ToolQuestion::None))
    }

    /// Returns the files that a call would write, relative to the workspace, with every link resolved. Empty if it
    /// writes none or would be refused.
    fn written_files<'a>(&'a self, _: &'a ToolScope, _: &'a ToolCall) -> BoxFuture<'a, Vec<PathBuf>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Returns a future to wait for, within a limit, before the tool list is complete: an MCP server is still starting.
    fn wait_until_ready<'a>(&'a self, _: &'a ToolScope) -> Option<BoxFuture<'a, ()>> {
        None
    }

    /// Runs one listed call. Dropping the future stops the work, child processes included.
    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        turn: &'a TurnId,
        call: &'a ToolCall,
        progress: ProgressSink<'a>,
    ) -> BoxFuture<'a, ToolOutcome>;
}
