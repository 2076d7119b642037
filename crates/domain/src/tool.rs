//! Tools: what a model may call, what a call may do to the world, and the port that runs one.

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
    /// Given by the model, unique within its turn; the result carries it back.
    pub id: String,
    pub name: String,
    pub arguments: Value,
}

/// What happens if a call is made twice, and so what a restart may do with one that has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    /// Reads only: run again.
    Pure,
    /// The second run changes nothing more: run again.
    Idempotent,
    /// Changes the world each time: never run again, the model is told the outcome is unknown.
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

/// Whether a person must agree before a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolConsent {
    NotNeeded,
    /// Unsafe by its nature; settings may waive it.
    AskPerson,
    /// The tool says so for each call, and no setting waives it.
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
    /// It can not reach beyond what its scope's sandbox allows: it runs confined, or not at all.
    pub confined: bool,
}

/// Where and for whom a tool is listed or run. The same value decides both.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolScope {
    pub agent: AgentId,
    pub session: SessionKey,
    /// Files are read and written only below this folder.
    pub workspace: PathBuf,
    /// There is a conversation in which a person can be asked.
    pub can_ask: bool,
    /// What the agent remembers, and who sees it.
    pub memory: ContextPolicy,
    /// Which skills its agent may read.
    pub skills: SkillPolicy,
    /// Whether it has files and skills of its own beside its workspace's.
    pub overlay: bool,
    /// MCP servers whose tools its agent may be given, by name.
    pub mcp: Vec<String>,
    pub isolation: ToolIsolation,
    pub sandbox: SandboxSettings,
    /// Its session is not so deep in a family that it could begin no other.
    pub spawns: bool,
    /// It may give work to others.
    pub delegates: bool,
    /// Its place in a team.
    #[serde(default)]
    pub team_role: Option<TeamRole>,
    /// The least authority of the people its turn works for.
    pub authority: Authority,
}

impl ToolScope {
    /// What an agent's spec says about its tools, in one session. `folder` is where its files are.
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

    /// In a session that others began: what it may begin itself depends on how many of them there are, and its programs
    /// reach no further than theirs.
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
    /// What it shows beside its words, each with its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<(String, Image)>,
    /// What was in force while it ran, measured.
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

/// Called with pieces of output while a tool runs: the engine counts them as progress and shows them.
pub type ProgressSink<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// What a tool says about one call before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolQuestion {
    /// The rules alone decide whether somebody is asked.
    None,
    /// A person must agree to this, in plain words.
    Ask(String),
    /// It can not run at all.
    Refuse(ToolOutcome),
}

/// Runs tools. Which of those listed a turn has is decided in `policy`; the engine calls no other.
pub trait Toolbox: Send + Sync {
    fn list_tools(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>>;

    /// Asked before a call of a tool whose consent is [`Consent::ByCall`].
    fn assess_call<'a>(&'a self, _: &'a ToolScope, _: &'a ToolCall) -> BoxFuture<'a, ToolQuestion> {
        Box::pin(std::future::ready(ToolQuestion::None))
    }

    /// The files a call would write, from the workspace and with every link resolved. Empty where it writes none, and
    /// where it would be refused.
    fn written_files<'a>(&'a self, _: &'a ToolScope, _: &'a ToolCall) -> BoxFuture<'a, Vec<PathBuf>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Something to wait for, for a while, before the list is whole: a server of tools that is still starting.
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
