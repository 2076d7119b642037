//! Errors of tool calls, in words that a model can act on.

use std::io;

use polyclaw_domain::sanitize;
use polyclaw_domain::tool::ToolOutcome;

use crate::text;

pub type Result<T> = std::result::Result<T, Error>;

const MAX_MESSAGE_LEN: usize = 2048;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no tool '{0}'")]
    UnknownTool(String),
    #[error("there is no skill '{0}'")]
    UnknownSkill(String),
    #[error("invalid arguments: {0}")]
    Arguments(String),
    #[error("cannot open the workspace folder: {}", describe_io_error(.0))]
    Workspace(io::Error),
    #[error("'{0}' is outside the workspace; only paths inside the workspace are allowed")]
    Outside(String),
    #[error("'{path}' {reason}")]
    Path { path: String, reason: String },
    #[error("'{path}': {}", describe_io_error(source))]
    Io { path: String, source: io::Error },
    #[error("'{path}' is {found}, not {wanted}")]
    Kind { path: String, found: &'static str, wanted: &'static str },
    #[error("'{path}' has {size} bytes; the limit is {limit}")]
    TooLarge { path: String, size: u64, limit: u64 },
    #[error(
        "'{path}' was not written: the workspace would exceed its quota of {limit_mb} MiB. Remove files you do not \
         need, or ask a person to raise sandbox.disk_mb of this agent"
    )]
    Quota { path: String, limit_mb: u64 },
    #[error("{0}")]
    Edit(String),
    #[error("timed out after {0} s")]
    OutOfTime(u64),
    #[error("cannot run the command: {}", describe_io_error(.0))]
    Command(io::Error),
    #[error(
        "this command was not run: it cannot be sandboxed ({0}). A person can let this agent run commands without a \
         sandbox: sandbox.mode = \"off\" in its section of config.toml"
    )]
    Sandbox(String),
    #[error("this machine does not support sandboxing of commands ({0})")]
    NoNamespaces(String),
    #[error("the worker process refused this call: {0}")]
    Refused(String),
    #[error(
        "no worker process became available within {0} s; try again later, or raise workers.max in config.toml"
    )]
    PoolExhausted(u64),
    #[error(
        "the worker process crashed while it ran this call. Whether it took effect is unknown; it was not run \
         again. Check before repeating it."
    )]
    WorkerCrash,
    #[error("'{0}' is not a public address; fetching from private networks is disabled")]
    Address(String),
    #[error("cannot fetch the page: {0}")]
    Fetch(String),
    #[error("the search failed: {0}")]
    Search(String),
    #[error("the MCP server '{0}' failed: {1}")]
    Server(String, String),
    #[error(
        "the connection to the MCP server '{0}' was lost during this call; whether it took effect is unknown. The \
         server is restarted"
    )]
    ServerGone(String),
    #[error("the tool stopped unexpectedly")]
    Broken,
}

/// Describes an I/O error in words that a model can act on.
fn describe_io_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or folder".to_owned(),
        _ => sanitize::strip_os_error(&error.to_string()),
    }
}

impl Error {
    pub fn io(path: &str, source: impl Into<io::Error>) -> Self {
        Self::Io { path: path.to_owned(), source: source.into() }
    }

    pub fn path(path: &str, reason: impl Into<String>) -> Self {
        Self::Path { path: path.to_owned(), reason: reason.into() }
    }

    /// Stable error code for logs. The message may quote the model, the code never does.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownTool(_) => "tool_unknown",
            Self::UnknownSkill(_) => "skill_unknown",
            Self::Arguments(_) => "tool_arguments",
            Self::Workspace(_) => "tool_workspace",
            Self::Outside(_) => "tool_outside_workspace",
            Self::Path { .. } => "tool_path",
            Self::Io { .. } => "tool_io",
            Self::Kind { .. } => "tool_file_kind",
            Self::TooLarge { .. } => "tool_too_large",
            Self::Quota { .. } => "workspace_quota",
            Self::Edit(_) => "tool_edit",
            Self::OutOfTime(_) => "tool_out_of_time",
            Self::Command(_) => "tool_command",
            Self::Sandbox(_) | Self::NoNamespaces(_) => "sandbox_unavailable",
            Self::Refused(_) => "tool_refused",
            Self::PoolExhausted(_) => "pool_exhausted",
            Self::WorkerCrash => "worker_crash",
            Self::Address(_) => "tool_address",
            Self::Fetch(_) => "tool_fetch",
            Self::Search(_) => "tool_search",
            Self::Server(..) => "mcp_server",
            Self::ServerGone(_) => "mcp_unavailable",
            Self::Broken => "tool_broken",
        }
    }
}

impl From<Error> for ToolOutcome {
    fn from(error: Error) -> Self {
        Self::error(text::truncate_text(&error.to_string(), MAX_MESSAGE_LEN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_have_plain_messages() {
        let missing = "'x': no such file or folder";
        assert_eq!(Error::io("x", io::ErrorKind::NotFound).to_string(), missing);
        assert_eq!(Error::io("x", io::Error::from_raw_os_error(2)).to_string(), missing);
        let denied = Error::io("x", io::Error::from_raw_os_error(13)).to_string();
        assert!(!denied.contains("os error") && denied.len() > 6, "{denied}");
    }
}
