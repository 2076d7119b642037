//! Errors of instance management, each with a stable code and an action.

use polyclaw_domain::config::ConfigErrors;
use polyclaw_domain::redact::quote_safely;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] polyclaw_store::Error),
    #[error("there is no instance '{0}'")]
    UnknownInstance(String),
    #[error("there is no token '{0}'")]
    UnknownToken(String),
    #[error(transparent)]
    BadName(#[from] polyclaw_domain::instance::InvalidInstanceName),
    #[error("'{0}' looks like the id of an instance, and cannot be a name")]
    NameLikeId(String),
    #[error("another instance is already named '{0}'")]
    NameTaken(String),
    #[error("port {0} belongs to another instance")]
    PortTaken(u16),
    #[error("another program listens on port {0}")]
    PortInUse(u16),
    #[error("an instance cannot use port {0}")]
    BadPort(u16),
    #[error("no port is free for another instance")]
    NoPortLeft,
    #[error("another operation on '{0}' is in progress")]
    Busy(String),
    #[error("'{name}' is already running (pid {pid})")]
    AlreadyRunning { name: String, pid: i32 },
    #[error("'{0}' is not running")]
    NotRunning(String),
    #[error("'{0}' is not running: there is nothing to stop")]
    NothingToStop(String),
    #[error("process {pid} is not an instance of this control plane, so it got no signal")]
    NotOurs { pid: i32 },
    #[error("'{0}' is archived")]
    Archived(String),
    #[error("'{0}' must be archived before deletion")]
    NotArchived(String),
    #[error("'{0}' is not archived")]
    NotInArchive(String),
    #[error("{count} archived instances are named '{name}'")]
    Ambiguous { name: String, count: usize },
    #[error("'{0}' is the instance of the home itself, whose folder contains all others")]
    HomeInstance(String),
    #[error("'{name}' did not start: {why}")]
    StartFailed { name: String, why: String, lines: Vec<String> },
    #[error("'{name}' (pid {pid}) did not end, even after it was killed")]
    DidNotEnd { name: String, pid: i32 },
    #[error("{what}: {why}")]
    Files { what: String, why: String },
    #[error("a control plane already runs on {0}")]
    ServerRunning(String),
    #[error("the config is invalid:\n{0}")]
    BadConfig(ConfigErrors),
    #[error("the config is not valid TOML: {why}{}", line.map(|line| format!(" (line {line})")).unwrap_or_default())]
    NotToml { line: Option<usize>, why: String },
    #[error("'{0}' has no config file")]
    NoConfig(String),
    #[error("cannot read the config of '{name}': {why}")]
    UnreadableConfig { name: String, why: String },
    #[error("too many configs are being read concurrently")]
    ConfigsBusy,
    #[error("the folder of '{0}' does not exist")]
    FolderGone(String),
    #[error("the version of the config is missing")]
    EtagMissing,
    #[error("the config was changed meanwhile")]
    EtagStale { current: String },
    #[error("the change affects secrets: {}", .0.join(", "))]
    SecretWrite(Vec<String>),
    #[error("a mask is used where no secret is stored: {}", .0.join(", "))]
    MaskWithoutSecret(Vec<String>),
    #[error("the instance rejected the config, and the old one was restored: {0}")]
    ReloadRejected(String),
    #[error("cannot reach '{name}': {why}")]
    Unreachable { name: String, why: String },
    #[error("'{0}' is running but does not respond")]
    Silent(String),
    #[error("there is no message '{0}'")]
    UnknownMessage(String),
    #[error("there is no rule '{0}'")]
    UnknownRule(String),
    #[error("this rule already exists")]
    RuleExists,
    #[error("{0}")]
    BadRule(String),
    #[error("{0}")]
    BadMessage(String),
    #[error("the payload has {0} bytes; at most {most} are allowed", most = polyclaw_domain::envelope::MAX_PAYLOAD_BYTES)]
    PayloadTooLarge(usize),
    #[error("hop {0} of at most 7: the message went through too many instances")]
    MessageLoops(u32),
    #[error("no routing rule allows '{from}' to send '{kind}' to '{to}'")]
    RouteDenied { from: String, to: String, kind: String },
    #[error("an instance may only send and fetch its own messages")]
    ForeignSender,
    #[error("the lease of the message has ended")]
    LeaseLost,
    #[error("the message is not a dead letter: it is {0}")]
    NotDeadLetter(&'static str),
    #[error("there is nothing to import at {0}")]
    NoImport(String),
    #[error("cannot import {what}: {why}")]
    BadImport { what: String, why: String },
    #[error("the workspace of '{agent}' is not in the imported folder: {folder}")]
    OutsideImport { agent: String, folder: String },
    #[error("there is no backup and no home at {0}")]
    NoBackup(String),
    #[error("{0} already exists")]
    TargetExists(String),
    #[error("the backup is damaged: {what} {why}")]
    BadBackup { what: String, why: String },
    #[error("internal error: {0}")]
    Failed(String),
}

/// What the caller should do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorAction {
    Reject,
    NotFound,
    Conflict,
    /// State the expected version.
    Precondition,
    /// Read the current version and decide again.
    Stale,
    /// The operation is not permitted.
    Forbid,
    TooLarge,
    /// The request is well-formed but would have unacceptable effects.
    Unfit,
    Retry,
    /// The instance failed.
    Gateway,
    /// The instance did not answer in time.
    GatewayTimeout,
    Alarm,
}

impl Error {
    pub fn from_io(what: impl AsRef<std::path::Path>, error: &std::io::Error) -> Self {
        Self::Files { what: what.as_ref().display().to_string(), why: error.to_string() }
    }

    pub(crate) fn not_toml(why: impl Into<String>) -> Self {
        Self::NotToml { line: None, why: why.into() }
    }

    pub(crate) fn unknown_message(id: &polyclaw_domain::id::EnvelopeId) -> Self {
        Self::UnknownMessage(quote_safely(id.as_str()))
    }

    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.code(),
            Self::UnknownInstance(_) => "unknown_instance",
            Self::UnknownToken(_) => "unknown_token",
            Self::BadName(_) | Self::NameLikeId(_) => "bad_name",
            Self::NameTaken(_) => "name_taken",
            Self::PortTaken(_) => "instance_port_taken",
            Self::PortInUse(_) => "port_in_use",
            Self::BadPort(_) => "bad_port",
            Self::NoPortLeft => "no_port_left",
            Self::Busy(_) => "instance_busy",
            Self::AlreadyRunning { .. } => "instance_running",
            Self::NotRunning(_) | Self::NothingToStop(_) => "instance_not_running",
            Self::NotOurs { .. } => "pid_mismatch",
            Self::Archived(_) => "instance_archived",
            Self::NotArchived(_) => "not_archived",
            Self::NotInArchive(_) => "not_in_archive",
            Self::Ambiguous { .. } => "ambiguous_name",
            Self::HomeInstance(_) => "home_instance",
            Self::StartFailed { .. } => "start_failed",
            Self::DidNotEnd { .. } => "kill_failed",
            Self::Files { .. } => "files_failed",
            Self::ServerRunning(_) => "control_running",
            Self::BadConfig(_) => "bad_config",
            Self::NotToml { .. } => "config_not_toml",
            Self::NoConfig(_) => "no_config",
            Self::UnreadableConfig { .. } => "unreadable_config",
            Self::ConfigsBusy => "configs_busy",
            Self::FolderGone(_) => "folder_missing",
            Self::EtagMissing => "etag_missing",
            Self::EtagStale { .. } => "etag_stale",
            Self::SecretWrite(_) => "secret_write",
            Self::MaskWithoutSecret(_) => "mask_without_secret",
            Self::ReloadRejected(_) => "config_reload_failed",
            Self::Unreachable { .. } => "instance_unreachable",
            Self::Silent(_) => "instance_unresponsive",
            Self::UnknownMessage(_) => "unknown_message",
            Self::UnknownRule(_) => "unknown_rule",
            Self::RuleExists => "rule_exists",
            Self::BadRule(_) => "bad_rule",
            Self::BadMessage(_) => "bad_message",
            Self::PayloadTooLarge(_) => "payload_too_large",
            Self::MessageLoops(_) => "too_many_hops",
            Self::RouteDenied { .. } => "route_denied",
            Self::ForeignSender => "sender_mismatch",
            Self::LeaseLost => "lease_lost",
            Self::NotDeadLetter(_) => "not_dead_letter",
            Self::NoImport(_) => "import_not_found",
            Self::BadImport { .. } => "import_unreadable",
            Self::OutsideImport { .. } => "import_path_not_allowed",
            Self::NoBackup(_) => "backup_not_found",
            Self::TargetExists(_) => "already_exists",
            Self::BadBackup { .. } => "backup_damaged",
            Self::Failed(_) => "control_failed",
        }
    }

    pub fn action(&self) -> ErrorAction {
        match self {
            Self::Store(error) if error.is_transient() => ErrorAction::Retry,
            Self::Store(_) | Self::Files { .. } | Self::DidNotEnd { .. } | Self::Failed(_) => {
                ErrorAction::Alarm
            }
            Self::UnknownInstance(_) | Self::UnknownToken(_) | Self::NoConfig(_) => ErrorAction::NotFound,
            Self::NoImport(_) | Self::NoBackup(_) => ErrorAction::NotFound,
            Self::NameLikeId(_) => ErrorAction::Reject,
            Self::UnreadableConfig { .. } | Self::FolderGone(_) => ErrorAction::Conflict,
            Self::BadName(_) | Self::BadPort(_) | Self::BadConfig(_) | Self::NotToml { .. } => {
                ErrorAction::Reject
            }
            Self::SecretWrite(_) | Self::MaskWithoutSecret(_) | Self::BadImport { .. } => ErrorAction::Reject,
            Self::BadBackup { .. } | Self::OutsideImport { .. } => ErrorAction::Reject,
            Self::TargetExists(_) => ErrorAction::Conflict,
            Self::NameTaken(_) | Self::PortTaken(_) | Self::PortInUse(_) => ErrorAction::Conflict,
            Self::AlreadyRunning { .. } | Self::NotRunning(_) | Self::NotOurs { .. } => ErrorAction::Conflict,
            Self::Archived(_) | Self::NotArchived(_) | Self::NotInArchive(_) => ErrorAction::Conflict,
            Self::Ambiguous { .. } | Self::NothingToStop(_) => ErrorAction::Conflict,
            Self::HomeInstance(_) | Self::ServerRunning(_) | Self::ReloadRejected(_) => ErrorAction::Conflict,
            Self::UnknownMessage(_) | Self::UnknownRule(_) => ErrorAction::NotFound,
            Self::BadRule(_) | Self::BadMessage(_) => ErrorAction::Reject,
            Self::RuleExists | Self::LeaseLost | Self::NotDeadLetter(_) => ErrorAction::Conflict,
            Self::RouteDenied { .. } | Self::ForeignSender => ErrorAction::Forbid,
            Self::PayloadTooLarge(_) => ErrorAction::TooLarge,
            Self::MessageLoops(_) => ErrorAction::Unfit,
            Self::EtagMissing => ErrorAction::Precondition,
            Self::EtagStale { .. } => ErrorAction::Stale,
            Self::Busy(_) | Self::ConfigsBusy | Self::NoPortLeft => ErrorAction::Retry,
            Self::StartFailed { .. } | Self::Unreachable { .. } => ErrorAction::Gateway,
            Self::Silent(_) => ErrorAction::GatewayTimeout,
        }
    }

    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::UnknownInstance(_) => "`polyclaw instances list --all` lists all instances",
            Self::NameTaken(_) | Self::PortTaken(_) => "choose another, or archive the instance that has it",
            Self::PortInUse(_) => "stop that program, or choose another port",
            Self::Files { .. } => "check its owner and mode, and that the disk has free space",
            Self::BadPort(_) => "use a port from 1024 on, other than the control plane's own",
            Self::NoPortLeft => "archive an instance, or choose a port yourself",
            Self::Busy(_) | Self::ConfigsBusy => "wait for it to finish, then retry",
            Self::NotRunning(_) => "start it first",
            Self::NotOurs { .. } => "`start` ignores it",
            Self::Archived(_) => "unarchive it first",
            Self::Ambiguous { .. } => "use its id, as `polyclaw instances list --all` shows it",
            Self::HomeInstance(_) => "archive it, or remove the whole home by hand",
            Self::StartFailed { .. } => "its last log lines show why",
            Self::ServerRunning(_) => "use that one, or set POLYCLAW_HOME to another home",
            Self::BadConfig(_) => "nothing was written; fix the listed errors",
            Self::NotToml { line: Some(_), .. } => {
                "fix that line, or replace the whole config: this one cannot be changed in parts"
            }
            Self::NotToml { .. } => "convert it to TOML: a config in JSON can be read but not changed here",
            Self::NoConfig(_) => "restore config.toml in its folder, or archive the instance",
            Self::UnreadableConfig { .. } => {
                "replace it with a readable config.toml, or archive the instance"
            }
            Self::FolderGone(_) => "restore the folder from a backup, or archive the instance and delete it",
            Self::EtagMissing => "send If-Match with the ETag of the config you read",
            Self::EtagStale { .. } => "read it again, review what changed, and resend your change",
            Self::SecretWrite(_) => "send X-Allow-Secret-Write: true to change them, or keep their masks",
            Self::MaskWithoutSecret(_) => "write the secret itself, or a reference such as env:NAME",
            Self::Silent(_) => "its log may show the cause; try restarting it",
            Self::ReloadRejected(_) => "the instance continues with the old config",
            Self::RouteDenied { .. } => "`polyclaw messages rules allow <from> <to> <type>` creates one",
            Self::PayloadTooLarge(_) => "send less, or refer to where the rest is",
            Self::MessageLoops(_) => "instances are answering each other in a loop: a person must start over",
            Self::LeaseLost => "ignore the message: it is delivered again, or another process has it",
            Self::NotDeadLetter(_) => "only dead letters can be replayed",
            Self::NoBackup(_) => "pass a folder that `polyclaw backup` created",
            Self::TargetExists(_) => {
                "nothing is overwritten: pass a folder that does not exist, or move this one away"
            }
            Self::BadBackup { .. } => "nothing was restored; use another backup",
            Self::NoImport(_) => "pass an openclaw.json, or its folder",
            Self::OutsideImport { .. } => {
                "nothing was changed; to copy that folder too, pass --allow-outside (allow_outside)"
            }
            Self::BadImport { .. } => "nothing was changed; fix it there and retry",
            _ => return None,
        })
    }
}
