//! `[[hooks]]`: programs and URLs that are notified of events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::ConfigReport;
use super::secret::Secret;

/// A program or URL that is notified of events after they happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookConfig {
    /// The events.
    pub on: Vec<HookEvent>,
    /// The program and its arguments. It gets the event as JSON on standard input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The URL to which the event is posted as JSON, instead of a program.
    #[schemars(url)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Posts are signed with this secret (HMAC-SHA256).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// Only events of sessions whose key matches this pattern, such as `agent:main:*`.
    #[serde(default = "default_sessions")]
    pub sessions: String,
    /// Timeout in seconds, after which the program is killed or the request is aborted.
    #[schemars(range(min = 1, max = 600))]
    #[serde(default = "default_timeout_seconds")]
    pub timeout_seconds: u32,
}

/// An event that hooks can receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HookEvent {
    /// A message was accepted: it is stored and will be answered.
    #[serde(rename = "message.accepted")]
    MessageAccepted,
    /// A turn ended with an answer.
    #[serde(rename = "turn.done")]
    TurnDone,
    /// A turn ended without an answer.
    #[serde(rename = "turn.failed")]
    TurnFailed,
    /// A task of a team was completed.
    #[serde(rename = "task.completed")]
    TaskCompleted,
    /// A member is about to complete a task. Exit code 2 of a program rejects it.
    #[serde(rename = "task.completing")]
    TaskCompleting,
    /// A member has nothing to do. Exit code 2 of a program sends it back to work.
    #[serde(rename = "teammate.idle")]
    TeammateIdle,
}

impl HookEvent {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MessageAccepted => "message.accepted",
            Self::TurnDone => "turn.done",
            Self::TurnFailed => "turn.failed",
            Self::TaskCompleted => "task.completed",
            Self::TaskCompleting => "task.completing",
            Self::TeammateIdle => "teammate.idle",
        }
    }
}

fn default_sessions() -> String {
    "*".to_owned()
}

fn default_timeout_seconds() -> u32 {
    10
}

pub(super) fn check_hooks(hooks: &[HookConfig], report: &mut ConfigReport) {
    for (at, hook) in hooks.iter().enumerate() {
        let path = format!("hooks[{at}]");
        if hook.on.is_empty() {
            report.add_error(&path, "on is missing: the hook receives no events", "add on = [\"turn.done\"]");
        }
        if hook.command.is_empty() == hook.url.is_none() {
            report.add_error(&path, "a hook needs either a command or a url", "set exactly one of them");
        }
        if hook.secret.is_some() && hook.url.is_none() {
            let message = "secret is set, but there is no url to post to";
            report.add_error(&format!("{path}.secret"), message, "add url, or remove secret");
        }
    }
}
