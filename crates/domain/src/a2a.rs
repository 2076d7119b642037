//! Agents elsewhere that speak A2A, as this instance asks them: by the name that the config gives them.

use std::fmt;

use crate::port::BoxFuture;

/// How a remote agent is named where agents are named.
const REMOTE_AGENT_PREFIX: &str = "a2a:";

/// The name of a remote agent, if it is one that is meant.
pub fn remote_agent_name(agent: &str) -> Option<&str> {
    agent.strip_prefix(REMOTE_AGENT_PREFIX)
}

/// A task there, as it was last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTask {
    /// None where the agent answered without a task: then it is over.
    pub id: Option<String>,
    pub state: RemoteTaskState,
    /// What it said so far.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteTaskState {
    Working,
    Completed,
    Failed,
    Canceled,
    /// It asks for something that nobody here gives: more words, or a login.
    Asking,
}

impl RemoteTaskState {
    /// By the word of the protocol; one we do not know may still end.
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

/// Why a remote agent could not be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteAgentError {
    /// In words of our own.
    pub message: String,
    /// What it said about it itself: no more to be trusted than its answers.
    pub remote_message: Option<String>,
    /// It refused. Otherwise nobody was reached, and to ask again may help.
    pub is_refusal: bool,
}

impl RemoteAgentError {
    pub fn refusal(message: impl Into<String>) -> Self {
        Self { message: message.into(), remote_message: None, is_refusal: true }
    }

    /// To ask again may help.
    pub fn transient(message: impl Into<String>) -> Self {
        Self { message: message.into(), remote_message: None, is_refusal: false }
    }
}

pub type RemoteTaskResult = Result<RemoteTask, RemoteAgentError>;

/// The port: remote agents by name.
pub trait RemoteAgentClient: fmt::Debug + Send + Sync {
    fn is_known(&self, name: &str) -> bool;

    /// Whether it takes the same `message_id` for the same task.
    fn dedupes_by_message_id(&self, name: &str) -> bool;

    /// Gives a task.
    fn send_task<'a>(
        &'a self,
        name: &'a str,
        message_id: &'a str,
        text: &'a str,
    ) -> BoxFuture<'a, RemoteTaskResult>;

    fn poll_task<'a>(&'a self, name: &'a str, task: &'a str) -> BoxFuture<'a, RemoteTaskResult>;

    fn cancel_task<'a>(&'a self, name: &'a str, task: &'a str) -> BoxFuture<'a, RemoteTaskResult>;
}
