use polyclaw_domain::approval::{ApprovalState, InvalidApproval};
use polyclaw_domain::command::UnknownCommand;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::memory::InvalidMemory;
use polyclaw_domain::relay::{MissingRelayRule, RelayRefusal};
use polyclaw_domain::run::{RunKind, SpawnLimitExceeded};
use polyclaw_domain::session_key::SessionKey;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("no agent '{0}'")]
    UnknownAgent(String),
    #[error("there is no provider '{0}'")]
    UnknownProvider(String),
    #[error("the provider has no model '{0}'")]
    UnknownModel(String),
    #[error("no cron job '{0}'")]
    UnknownCronJob(String),
    #[error("a cron job '{0}' already exists")]
    CronJobExists(String),
    #[error("the cron job '{0}' is defined in the config file")]
    CronJobInConfig(String),
    #[error("invalid cron job: {0}")]
    InvalidCronJob(String),
    #[error("no session '{0}'")]
    UnknownSession(String),
    #[error("no turn '{0}'")]
    UnknownTurn(String),
    #[error("no approval '{0}'")]
    UnknownApproval(String),
    #[error("no outbox message '{0}'")]
    UnknownOutbox(String),
    #[error("no tool '{0}'")]
    UnknownTool(String),
    #[error("'{tool}' is a tool of an MCP server that the agent {agent} does not name")]
    ServerNotNamed { tool: String, agent: AgentId },
    #[error("no memory '{0}'")]
    UnknownMemory(String),
    #[error("no pending sender has the code or name '{0}'")]
    UnknownPairing(String),
    #[error("{0}")]
    InvalidMemory(#[from] InvalidMemory),
    #[error("an agent '{0}' already exists")]
    AgentExists(String),
    #[error("the name '{name}' is used by the agent '{id}'")]
    AgentNameTaken { name: String, id: AgentId },
    #[error("the agent '{0}' is available here only to owners")]
    AgentNotAllowed(AgentId),
    #[error("the agent '{0}' is defined in the config file")]
    AgentInConfig(String),
    #[error("'{0}' is the default agent and cannot be deleted")]
    DefaultAgent(String),
    #[error("the config names the agent '{0}' in {1}")]
    AgentInRules(String, String),
    #[error("invalid agent: {0}")]
    InvalidAgent(String),
    #[error("the agent cannot run: {0}")]
    UnsafeWorkspace(String),
    #[error("'{0}' matches several agents: {1}")]
    AmbiguousAgent(String, String),
    #[error("{}", .0.user_message(Locale::English))]
    NotYours(InvalidApproval),
    #[error("the message is empty")]
    EmptyMessage,
    #[error("write a message after the name: /{0} <message>")]
    OnlyAName(AgentId),
    #[error("{0}")]
    UnknownCommand(UnknownCommand),
    #[error("the message has {0} characters; the maximum is {1}")]
    TooLong(usize, usize),
    #[error("the idempotency key or message id has {0} bytes; the maximum is {1}")]
    KeyTooLong(usize, usize),
    #[error("a key or name contains a secret of this instance")]
    SecretInKey,
    #[error("{0} messages already wait in this session; no more are accepted until one is answered")]
    BacklogFull(usize),
    #[error("this message was already accepted, and its session has been deleted since")]
    Deleted,
    #[error("{0}")]
    Relay(#[from] RelayRefusal),
    #[error("{0}")]
    Subagent(String),
    #[error("{}", .1.describe(*.0))]
    TooMany(RunKind, SpawnLimitExceeded),
    #[error("'{0}' may not delegate work to '{1}'")]
    DelegationDenied(String, String),
    #[error("'{from}' may not write to sessions of '{to}': {missing}")]
    SendDenied { from: AgentId, to: AgentId, missing: MissingRelayRule },
    #[error("{0} already waits for this session; neither would ever be answered")]
    WaitDeadlock(String),
    #[error("{0}")]
    Team(#[from] polyclaw_domain::team::TeamRefusal),
    #[error("{0}")]
    Task(#[from] polyclaw_domain::task::TaskRefusal),
    #[error("no run '{0}' of this session")]
    UnknownRun(String),
    #[error("{}", .0.text(Locale::English))]
    StateConflict(StateConflict),
    #[error("{0}")]
    InvalidState(String),
    #[error("a transcript could not be archived: {0}")]
    Archive(String),
    #[error("the files of a team could not be written: {0}")]
    TeamFiles(String),
    #[error("a file of an agent could not be read or written: {0}")]
    AgentFiles(String),
    #[error("shutting down: no new messages are accepted")]
    Draining,
    #[error(transparent)]
    Store(#[from] polyclaw_store::Error),
}

/// Why the current state of something does not allow a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateConflict {
    TurnRunning,
    FocusMissing(SessionKey),
    FocusRefused(SessionKey),
    SubagentGone,
    AmbiguousLabel(String),
    /// Several teams have a member of this name: each team with the member's session.
    AmbiguousMember(Vec<(String, SessionKey)>),
    ResultNotHeld,
    MemberClosed,
    NoAgentAccepted,
    ApprovalClosed,
    ApprovalDecided(ApprovalState),
}

impl From<StateConflict> for Error {
    fn from(conflict: StateConflict) -> Self {
        Self::StateConflict(conflict)
    }
}

/// How the caller should react to an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCategory {
    Reject,
    NotFound,
    Conflict,
    Retry,
    Alarm,
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownAgent(_) => "unknown_agent",
            Self::UnknownProvider(_) => "unknown_provider",
            Self::UnknownModel(_) => "unknown_model",
            Self::UnknownCronJob(_) => "unknown_cron_job",
            Self::CronJobExists(_) => "cron_job_exists",
            Self::CronJobInConfig(_) => "cron_job_in_config",
            Self::InvalidCronJob(_) => "invalid_cron_job",
            Self::UnknownSession(_) => "unknown_session",
            Self::UnknownTurn(_) => "unknown_turn",
            Self::UnknownApproval(_) => "unknown_approval",
            Self::UnknownOutbox(_) => "unknown_outbox",
            Self::UnknownTool(_) => "unknown_tool",
            Self::ServerNotNamed { .. } => "server_not_named",
            Self::UnknownMemory(_) => "unknown_memory",
            Self::UnknownPairing(_) => "unknown_pairing",
            Self::UnknownRun(_) => "unknown_run",
            Self::Subagent(_) => "spawn_denied",
            Self::TooMany(RunKind::Subagent, SpawnLimitExceeded::Depth(..)) => "spawn_depth_exceeded",
            Self::TooMany(RunKind::Subagent, SpawnLimitExceeded::Children(..)) => "max_children_exceeded",
            Self::TooMany(RunKind::Delegate, SpawnLimitExceeded::Depth(..)) => "delegation_depth_exceeded",
            Self::TooMany(RunKind::Delegate, SpawnLimitExceeded::Children(..))
            | Self::TooMany(_, SpawnLimitExceeded::Concurrent(..)) => "max_concurrent_exceeded",
            Self::DelegationDenied(..) => "delegation_denied",
            Self::SendDenied { .. } => "send_denied",
            Self::WaitDeadlock(_) => "wait_deadlock",
            Self::Team(refusal) => refusal.code(),
            Self::Task(refusal) => refusal.code(),
            Self::InvalidMemory(_) => "invalid_memory",
            Self::AgentExists(_) | Self::AgentNameTaken { .. } => "agent_exists",
            Self::AgentNotAllowed(_) => "agent_not_allowed",
            Self::AgentInConfig(_) => "agent_in_config",
            Self::DefaultAgent(_) => "default_agent",
            Self::AgentInRules(..) => "agent_in_use",
            Self::InvalidAgent(_) => "invalid_agent",
            Self::UnsafeWorkspace(_) => "unsafe_workspace",
            Self::AmbiguousAgent(..) => "ambiguous_agent",
            Self::NotYours(InvalidApproval::WrongPerson) => "approver_mismatch",
            Self::NotYours(InvalidApproval::OwnerOnly) => "owner_only",
            Self::NotYours(InvalidApproval::OtherConversation) => "session_mismatch",
            Self::NotYours(InvalidApproval::OtherArguments) => "arguments_mismatch",
            Self::EmptyMessage | Self::OnlyAName(_) => "empty_message",
            Self::UnknownCommand(_) => "unknown_command",
            Self::TooLong(..) => "message_too_long",
            Self::KeyTooLong(..) => "key_too_long",
            Self::SecretInKey => "secret_in_key",
            Self::BacklogFull(_) => "backlog_full",
            Self::Deleted => "session_deleted",
            Self::Relay(refusal) => refusal.code(),
            Self::StateConflict(_) | Self::InvalidState(_) => "invalid_state",
            Self::Archive(_) => "archive_failed",
            Self::TeamFiles(_) => "team_files_failed",
            Self::AgentFiles(_) => "agent_files_failed",
            Self::Draining => "shutting_down",
            Self::Store(error) => error.code(),
        }
    }

    pub fn category(&self) -> ErrorCategory {
        match self {
            Self::UnknownAgent(_)
            | Self::UnknownCronJob(_)
            | Self::UnknownSession(_)
            | Self::UnknownTurn(_) => ErrorCategory::NotFound,
            Self::UnknownApproval(_) | Self::UnknownOutbox(_) => ErrorCategory::NotFound,
            Self::UnknownTool(_) | Self::UnknownMemory(_) | Self::UnknownPairing(_) => {
                ErrorCategory::NotFound
            }
            Self::UnknownRun(_) | Self::ServerNotNamed { .. } => ErrorCategory::NotFound,
            Self::Subagent(_) | Self::TooMany(..) | Self::DelegationDenied(..) | Self::SendDenied { .. } => {
                ErrorCategory::Reject
            }
            Self::Team(refusal) => team_error_category(refusal.code()),
            Self::Task(refusal) => team_error_category(refusal.code()),
            Self::InvalidMemory(_) => ErrorCategory::Reject,
            Self::EmptyMessage | Self::OnlyAName(_) | Self::UnknownCommand(_) => ErrorCategory::Reject,
            Self::TooLong(..) | Self::KeyTooLong(..) | Self::Relay(_) => ErrorCategory::Reject,
            Self::InvalidAgent(_) | Self::InvalidCronJob(_) | Self::AmbiguousAgent(..) => {
                ErrorCategory::Reject
            }
            Self::NotYours(_) => ErrorCategory::Conflict,
            Self::SecretInKey | Self::UnknownProvider(_) | Self::UnknownModel(_) => ErrorCategory::Reject,
            Self::AgentExists(_) | Self::AgentInConfig(_) | Self::DefaultAgent(_) => ErrorCategory::Conflict,
            Self::AgentInRules(..) | Self::UnsafeWorkspace(_) => ErrorCategory::Conflict,
            Self::AgentNameTaken { .. } => ErrorCategory::Conflict,
            Self::AgentNotAllowed(_) => ErrorCategory::Reject,
            Self::CronJobExists(_) | Self::CronJobInConfig(_) => ErrorCategory::Conflict,
            Self::StateConflict(_) | Self::InvalidState(_) | Self::Deleted | Self::WaitDeadlock(_) => {
                ErrorCategory::Conflict
            }
            Self::BacklogFull(_) | Self::Draining => ErrorCategory::Retry,
            Self::Archive(_) | Self::TeamFiles(_) | Self::AgentFiles(_) => ErrorCategory::Alarm,
            Self::Store(error) if error.is_transient() => ErrorCategory::Retry,
            Self::Store(_) => ErrorCategory::Alarm,
        }
    }

    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::UnknownAgent(_) => Some("`polyclaw agents list` lists the agents"),
            Self::UnknownProvider(_) | Self::UnknownModel(_) => Some("`polyclaw models` lists the models"),
            Self::UnknownCronJob(_) => Some("`polyclaw cron list` lists the cron jobs"),
            Self::UnknownTool(_) => Some("`polyclaw tools` lists the tools"),
            Self::ServerNotNamed { .. } => Some(
                "add the server to mcp = [\"<server>\"] of the agent in config.toml; `polyclaw mcp list` lists the servers",
            ),
            Self::UnknownSession(_) => Some("`polyclaw sessions` lists the sessions"),
            Self::UnknownMemory(_) => Some("`polyclaw memory list` lists the memories"),
            Self::UnknownPairing(_) => {
                Some("codes expire after an hour; `polyclaw pairing list` lists the pending senders")
            }
            Self::DelegationDenied(..) => {
                Some("add the agent to delegation.allow_agents of the delegating agent in config.toml")
            }
            Self::SendDenied { .. } => Some(
                "allow both agents in config.toml: [tools] agent_to_agent = { enabled = true, allow = […] }",
            ),
            Self::WaitDeadlock(_) => {
                Some("send without wait_seconds, or end the turn, so that it can be answered")
            }
            Self::Team(refusal) => team_error_hint(refusal.code()),
            Self::Task(refusal) => team_error_hint(refusal.code()),
            Self::InvalidMemory(_) => Some("limit a memory to a few sentences; put longer text into a file"),
            Self::AgentInConfig(_) => Some("change it in config.toml, which is applied at every start"),
            Self::AgentInRules(..) => Some(
                "remove it from those rules of the config first; `polyclaw agents unbind <agent> --all` removes its bindings",
            ),
            Self::DefaultAgent(_) => Some("make another agent the default in config.toml first"),
            Self::CronJobExists(_) => Some("change it with `polyclaw cron edit`, or use another name"),
            Self::CronJobInConfig(_) => Some("change it under [[cron]] or [heartbeat] in config.toml"),
            Self::InvalidCronJob(_) => Some(
                "write a schedule as `30 8 * * 1-5`, `every 10m` or `at 2026-12-01 09:00`; nothing was changed",
            ),
            Self::InvalidAgent(_) => Some("nothing was changed; correct the named fields and send it again"),
            Self::NotYours(InvalidApproval::OtherConversation) => {
                Some("`polyclaw approvals` shows where each was requested")
            }
            Self::UnknownCommand(_) => Some("/help lists the commands"),
            Self::BacklogFull(_) => Some("wait for an answer, or stop the running turn with /stop"),
            Self::AgentFiles(_) => Some("check the folder workspace/agents/ and the disk"),
            Self::TeamFiles(_) => Some("teams are not affected; check the folder teams/ and the disk"),
            Self::Archive(_) => Some("nothing was removed; check the folder archive/ and the disk"),
            Self::Store(polyclaw_store::Error::Full(_)) => Some("free some space; nothing accepted was lost"),
            Self::Store(polyclaw_store::Error::ReadOnly(_)) => {
                Some("check the owner and mode of the home folder")
            }
            Self::Store(polyclaw_store::Error::FilesReplaced(_)) => {
                Some("restore the original files, or restart the instance; nothing is accepted until then")
            }
            Self::Store(polyclaw_store::Error::Corrupt(_)) => {
                Some("a database file is damaged; `polyclaw doctor` names it; restore it from a copy")
            }
            _ => None,
        }
    }
}

/// Category of a team or task refusal; few of the many codes need one of their own.
fn team_error_category(code: &str) -> ErrorCategory {
    match code {
        "unknown_team" | "unknown_task" => ErrorCategory::NotFound,
        "invalid_name" | "invalid_message" | "invalid_task" | "unknown_dependency" | "self_dependency" => {
            ErrorCategory::Reject
        }
        "too_many_teams" | "too_many_members" | "too_many_tasks" | "dependency_cycle" => {
            ErrorCategory::Reject
        }
        _ => ErrorCategory::Conflict,
    }
}

fn team_error_hint(code: &str) -> Option<&'static str> {
    match code {
        "unknown_team" => Some("`polyclaw teams list` lists the teams"),
        "not_a_member" => Some("`polyclaw teams show` lists the members"),
        "too_many_teams" | "too_many_members" | "too_many_tasks" => {
            Some("[teams] in config.toml sets the limits")
        }
        "member_exists" => {
            Some("use `polyclaw teams join --replace` or replace = true to give the name to a new session")
        }
        _ => None,
    }
}
