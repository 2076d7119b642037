//! Tools: what a model may call, what a call may do to the world, and the port that runs one.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::{Isolation, Sandbox};
use crate::id::{AgentId, TurnId};
use crate::key::SessionKey;
use crate::port::Pending;
use crate::sandbox::Facts;

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
pub enum Effect {
    /// Reads only: run again.
    Pure,
    /// The second run changes nothing more: run again.
    Idempotent,
    /// Changes the world each time: never run again, the model is told the outcome is unknown.
    Effect,
}

impl Effect {
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
pub enum Risk {
    Low,
    High,
}

/// Whether a person must agree before a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consent {
    NotNeeded,
    AskPerson,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    pub effect: Effect,
    pub risk: Risk,
    pub consent: Consent,
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
    /// A person sits at a terminal and can be asked.
    pub can_ask: bool,
    pub isolation: Isolation,
    pub sandbox: Sandbox,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutcome {
    pub content: String,
    pub is_error: bool,
    /// What was in force while it ran, measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
}

impl ToolOutcome {
    pub fn ok(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: false, facts: None }
    }

    pub fn error(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: true, facts: None }
    }
}

/// Called with pieces of output while a tool runs: the engine counts them as progress and shows them.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// Runs tools. One filter serves both: what `list` shows can be run, what it hides can not.
pub trait Toolbox: Send + Sync {
    fn list(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>>;

    /// Runs one listed call. Dropping the future stops the work, child processes included.
    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        turn: &'a TurnId,
        call: &'a ToolCall,
        progress: Progress<'a>,
    ) -> Pending<'a, ToolOutcome>;
}
