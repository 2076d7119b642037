//! Remote agents that speak A2A, as this instance calls them: by their name in the config.

use std::fmt;

use crate::port::BoxFuture;

/// Prefix that marks a remote agent in lists of agents.
const REMOTE_AGENT_PREFIX: &str = "a2a:";

/// Returns the name of a remote agent. `None` for a local agent.
pub fn remote_agent_name(agent: &str) -> Option<&str> {
    agent.strip_prefix(REMOTE_AGENT_PREFIX)
}

/// A remote task, as last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTask {
    /// `None` if the agent answered without a task, which is then complete.
    pub id: Option<String>,
    pub state: RemoteTaskState,
    /// The answer so far.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteTaskState {
    Working,
    Completed,
    Failed,
    Canceled,
    /// It asks for something that is unavailable here: more input, or a login.
    Asking,
}

impl RemoteTaskState {
    /// Parses a state of the protocol. Unknown states count as working, because they may still end.
    pub fn parse(word: &str) -> Self {
        match word {
            "completed" => Self::Completed,
            "failed" | "rejected" => Self::Failed,
            "canceled" => Self::Canceled,
            "input-required" | "auth-required" => Self::Asking,
            _ => Self::Working,
        }
    }
}

/// Why a call to a remote agent failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteAgentError {
    /// Our description of the error.
    pub message: String,
    /// The remote agent's own description, as untrusted as its answers.
    pub remote_message: Option<String>,
    /// The agent refused. Otherwise it was not reached, and a retry may help.
    pub is_refusal: bool,
}

impl RemoteAgentError {
    pub fn refusal(message: impl Into<String>) -> Self {
        Self { message: message.into(), remote_message: None, is_refusal: true }
    }

    /// Returns an error after which a retry may help.
    pub fn transient(message: impl Into<String>) -> Self {
        Self { message: message.into(), remote_message: None, is_refusal: false }
    }
}

pub type RemoteTaskResult = Result<RemoteTask, RemoteAgentError>;

/// The port for calling remote agents by name.
pub trait RemoteAgentClient: fmt::Debug + Send + Sync {
    fn is_known(&self, name: &str) -> bool;

    /// Returns whether the agent deduplicates tasks by `message_id`.
    fn dedupes_by_message_id(&self, name: &str) -> bool;

    /// Sends a task.
    fn send_task<'a>(
        &'a self,
        name: &'a str,
        message_id: &'a str,
        text: &'a str,
    ) -> BoxFuture<'a, RemoteTaskResult>;

    fn poll_task<'a>(&'a self, name: &'a str, task: &'a str) -> BoxFuture<'a, RemoteTaskResult>;

    fn cancel_task<'a>(&'a self, name: &'a str, task: &'a str) -> BoxFuture<'a, RemoteTaskResult>;
}
