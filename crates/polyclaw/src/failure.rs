//! A command's failure: an error code for programs, a message and a hint for people, an exit code for scripts.

use std::fmt;

use polyclaw_domain::redact::Redactor;
use polyclaw_domain::sanitize;

/// Exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureExit {
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    Conflict = 4,
    Unavailable = 5,
}

#[derive(Clone, Debug)]
pub struct CommandFailure {
    pub exit: FailureExit,
    pub code: String,
    pub message: String,
    pub hint: Option<String>,
    /// More information for programs.
    pub details: Option<Box<serde_json::Value>>,
}

impl CommandFailure {
    pub fn new(exit: FailureExit, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { exit, code: code.into(), message: message.into(), hint: None, details: None }
    }

    pub fn failed(code: &str, message: impl Into<String>) -> Self {
        Self::new(FailureExit::Failed, code, message)
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(FailureExit::Usage, "usage", message)
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the failure without anything that looks like a secret, since an error may quote a URL with a password.
    /// Also removes OS error numbers, which mean nothing to people.
    pub fn redacted(mut self) -> Self {
        self.message = sanitize::strip_os_error(&self.message);
        let redactor = Redactor::default();
        redactor.redact_in_place(&mut self.message);
        self.hint.iter_mut().for_each(|hint| redactor.redact_in_place(hint));
        self.details.iter_mut().for_each(|details| redactor.redact_json(details));
        self
    }

    /// Converts any command error into a failure.
    pub fn from_error(error: &anyhow::Error) -> Self {
        error.downcast_ref::<Self>().cloned().unwrap_or_else(|| Self::failed("failed", format!("{error:#}")))
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CommandFailure {}

impl From<polyclaw_control::Error> for CommandFailure {
    fn from(error: polyclaw_control::Error) -> Self {
        use polyclaw_control::{Error, ErrorAction};
        let exit = match error.action() {
            ErrorAction::Reject | ErrorAction::Precondition | ErrorAction::TooLarge | ErrorAction::Unfit => {
                FailureExit::Usage
            }
            ErrorAction::NotFound => FailureExit::NotFound,
            ErrorAction::Conflict | ErrorAction::Stale => FailureExit::Conflict,
            ErrorAction::Retry | ErrorAction::Gateway | ErrorAction::GatewayTimeout => {
                FailureExit::Unavailable
            }
            ErrorAction::Alarm | ErrorAction::Forbid => FailureExit::Failed,
        };
        let mut failure = Self::new(exit, error.code(), error.to_string());
        failure.hint = error.hint().map(str::to_owned);
        if let Error::StartFailed { lines, .. } = &error {
            failure.message = [vec![failure.message], lines.clone()].concat().join("\n  ");
        }
        failure
    }
}

impl From<polyclaw_store::Error> for CommandFailure {
    fn from(error: polyclaw_store::Error) -> Self {
        use polyclaw_store::Error;
        let exit = if error.is_transient() { FailureExit::Unavailable } else { FailureExit::Failed };
        let failure = Self::new(exit, error.code(), error.to_string());
        match error {
            Error::Full(_) => failure.hint("free some space and restart; no accepted message was lost"),
            Error::ReadOnly(_) => failure.hint("check the owner and mode of the home folder"),
            Error::NewerSchema { .. } => {
                failure.hint("update polyclaw, or point POLYCLAW_HOME at another home")
            }
            Error::Corrupt(_) => {
                failure.hint("`polyclaw doctor` checks the database; restore it from a backup")
            }
            Error::Unavailable { .. } => failure.hint("check that the database exists and can be opened"),
            _ => failure,
        }
    }
}
