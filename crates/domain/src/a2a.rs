//! Agents elsewhere that speak A2A, as this instance asks them: by the name that the config gives them.

use std::fmt;

use crate::port::Pending;

/// How a remote agent is named where agents are named.
const PREFIX: &str = "a2a:";

/// The name of a remote agent, if it is one that is meant.
pub fn remote(agent: &str) -> Option<&str> {
    agent.strip_prefix(PREFIX)
}

/// A task there, as it was last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTask {
    /// None where the agent answered without a task: then it is over.
    pub id: Option<String>,
    pub state: RemoteState,
    /// What it said so far.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteState {
    Working,
    Completed,
    Failed,
    Canceled,
    /// It asks for something that nobody here gives: more words, or a login.
    Asking,
}

impl RemoteState {
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
pub struct RemoteFault {
    /// In words of our own.
    pub message: String,
    /// What it said about it itself: no more to be trusted than its answers.
    pub said: Option<String>,
    /// It refused. Otherwise nobody was reached, and to ask again may help.
    pub is_refusal: bool,
}

impl RemoteFault {
    pub fn refusal(message: impl Into<String>) -> Self {
        Self { message: message.into(), said: None, is_refusal: true }
    }

    /// To ask again may help.
    pub fn passing(message: impl Into<String>) -> Self {
        Self { message: message.into(), said: None, is_refusal: false }
    }
}

pub type Looked = Result<RemoteTask, RemoteFault>;

/// The port: remote agents by name.
pub trait Remotes: fmt::Debug + Send + Sync {
    fn is_known(&self, name: &str) -> bool;

    /// Whether it takes the same `message_id` for the same task.
    fn knows_again(&self, name: &str) -> bool;

    /// Gives a task.
    fn send<'a>(&'a self, name: &'a str, message_id: &'a str, text: &'a str) -> Pending<'a, Looked>;

    fn look<'a>(&'a self, name: &'a str, task: &'a str) -> Pending<'a, Looked>;

    fn cancel<'a>(&'a self, name: &'a str, task: &'a str) -> Pending<'a, Looked>;
}
