use polyclaw_domain::approval::InvalidApproval;
use polyclaw_domain::command::UnknownCommand;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::memory::InvalidMemory;
use polyclaw_domain::relay::{MissingRelayRule, RelayRefusal};
use polyclaw_domain::run::{RunKind, SpawnLimitExceeded};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("no agent '{0}'")]
    UnknownAgent(String),
    #[error("there is no provider '{0}'")]
    UnknownProvider(String),
    #[error("its provider has no model '{0}'")]
    UnknownModel(String),
    #[error("there is no scheduled errand '{0}'")]
    UnknownCronJob(String),
    #[error("there is an errand '{0}' already")]
    CronJobExists(String),
    #[error("the errand '{0}' belongs to the config file")]
    CronJobInConfig(String),
    #[error("this errand can not be: {0}")]
    InvalidCronJob(String),
    #[error("no session '{0}'")]
    UnknownSession(String),
    #[error("no turn '{0}'")]
    UnknownTurn(String),
    #[error("no approval '{0}'")]
    UnknownApproval(String),
    #[error("no outbox entry '{0}'")]
    UnknownOutbox(String),
    #[error("no tool '{0}'")]
    UnknownTool(String),
    #[error("'{tool}' is a tool of an MCP server that the agent {agent} does not name")]
    ServerNotNamed { tool: String, agent: AgentId },
    #[error("no memory '{0}'")]
    UnknownMemory(String),
    #[error("nobody waits with the code or name '{0}'")]
    UnknownPairing(String),
    #[error("{0}")]
    InvalidMemory(#[from] InvalidMemory),
    #[error("there is an agent '{0}' already")]
    AgentExists(String),
    #[error("the name '{name}' is taken by the agent '{id}'")]
    AgentNameTaken { name: String, id: AgentId },
    #[error("the agent '{0}' is not available here to people who are no owners")]
    AgentNotAllowed(AgentId),
    #[error("the agent '{0}' belongs to the config file")]
    AgentInConfig(String),
    #[error("'{0}' is the default agent: it can not be removed")]
    DefaultAgent(String),
    #[error("the config names the agent '{0}' in {1}")]
    AgentInRules(String, String),
    #[error("this agent can not be: {0}")]
    InvalidAgent(String),
    #[error("the agent can not run: {0}")]
    UnsafeWorkspace(String),
    #[error("'{0}' can be several agents: {1}")]
    AmbiguousAgent(String, String),
    #[error("{}", .0.user_message())]
    NotYours(InvalidApproval),
    #[error("the message is empty")]
    EmptyMessage,
    #[error("say what {0} is to do: /{0} <message>")]
    OnlyAName(AgentId),
    #[error("{0}")]
    UnknownCommand(UnknownCommand),
    #[error("the message has {0} characters; at most {1} are taken")]
    TooLong(usize, usize),
    #[error("the idempotency key or message id has {0} bytes; at most {1} are taken")]
    KeyTooLong(usize, usize),
    #[error("a key or name holds a secret of this instance")]
    SecretInKey,
    #[error("{0} messages already wait in this session: nothing more is taken until one is answered")]
    BacklogFull(usize),
    #[error("this message was taken before, and its session has been deleted since")]
    Deleted,
    #[error("{0}")]
    Relay(#[from] RelayRefusal),
    #[error("{0}")]
    Subagent(String),
    #[error("{}", .1.describe(*.0))]
    TooMany(RunKind, SpawnLimitExceeded),
    #[error("'{0}' may not give work to '{1}'")]
    DelegationDenied(String, String),
    #[error("'{from}' may not write to sessions of '{to}': {missing}")]
    SendDenied { from: AgentId, to: AgentId, missing: MissingRelayRule },
    #[error("{0} waits for this session already: neither would ever be answered")]
    WaitDeadlock(String),
    #[error("{0}")]
    Team(#[from] polyclaw_domain::team::TeamRefusal),
    #[error("{0}")]
    Task(#[from] polyclaw_domain::task::TaskRefusal),
    #[error("no run '{0}' of this session")]
    UnknownRun(String),
    #[error("{0}")]
    InvalidState(String),
    #[error("a transcript could not be archived: {0}")]
    Archive(String),
    #[error("the files of a team could not be written: {0}")]
    TeamFiles(String),
    #[error("a file of an agent could not be read or written: {0}")]
    AgentFiles(String),
    #[error("shutting down: nothing new is accepted")]
    Draining,
    #[error(transparent)]
    Store(#[from] polyclaw_store::Error),
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
            Self::InvalidState(_) => "invalid_state",
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
            Self::InvalidState(_) | Self::Deleted | Self::WaitDeadlock(_) => ErrorCategory::Conflict,
            Self::BacklogFull(_) | Self::Draining => ErrorCategory::Retry,
            Self::Archive(_) | Self::TeamFiles(_) | Self::AgentFiles(_) => ErrorCategory::Alarm,
            Self::Store(error) if error.is_transient() => ErrorCategory::Retry,
            Self::Store(_) => ErrorCategory::Alarm,
        }
    }

    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::UnknownAgent(_) => Some("`polyclaw agents list` shows the agents there are"),
            Self::UnknownProvider(_) | Self::UnknownModel(_) => {
                Some("`polyclaw models` shows the models there are")
            }
            Self::UnknownCronJob(_) => Some("`polyclaw cron list` shows what is scheduled"),
            Self::UnknownTool(_) => Some("`polyclaw tools` shows the tools there are"),
            Self::ServerNotNamed { .. } => Some(
                "mcp = [\"<server>\"] of the agent in config.toml names those it may use; see `polyclaw mcp list`",
            ),
            Self::UnknownSession(_) => Some("`polyclaw sessions` shows the sessions there are"),
            Self::UnknownMemory(_) => Some("`polyclaw memory list` shows what is remembered"),
            Self::UnknownPairing(_) => {
                Some("codes end after an hour; `polyclaw pairing list` shows who waits")
            }
            Self::DelegationDenied(..) => {
                Some("delegation.allow_agents of the agent that asks, in config.toml, names whom it may ask")
            }
            Self::SendDenied { .. } => Some(
                "[tools] agent_to_agent = { enabled = true, allow = […] } in config.toml names the agents that may",
            ),
            Self::WaitDeadlock(_) => Some("send without wait_seconds, or end the turn: then it is answered"),
            Self::Team(refusal) => team_error_hint(refusal.code()),
            Self::Task(refusal) => team_error_hint(refusal.code()),
            Self::InvalidMemory(_) => {
                Some("keep a memory to a few sentences; longer text belongs into a file")
            }
            Self::AgentInConfig(_) => Some("change it in config.toml; the file wins at every start"),
            Self::AgentInRules(..) => Some(
                "take it out of those rules of the config first; `polyclaw agents unbind <agent> --all` removes its bindings",
            ),
            Self::DefaultAgent(_) => Some("make another agent the default in config.toml first"),
            Self::CronJobExists(_) => Some("`polyclaw cron edit` changes it; or take another name"),
            Self::CronJobInConfig(_) => Some("change it under [[cron]] or [heartbeat] in config.toml"),
            Self::InvalidCronJob(_) => Some(
                "write a schedule as `30 8 * * 1-5`, `every 10m` or `at 2026-12-01 09:00`; nothing was changed",
            ),
            Self::InvalidAgent(_) => Some("nothing was changed; correct what is named and send it again"),
            Self::NotYours(InvalidApproval::OtherConversation) => {
                Some("`polyclaw approvals` shows where each was asked")
            }
            Self::UnknownCommand(_) => Some("/help lists the commands"),
            Self::BacklogFull(_) => Some("wait for an answer, or stop the running turn with /stop"),
            Self::AgentFiles(_) => Some("look at the folder workspace/agents/ and the disk"),
            Self::TeamFiles(_) => Some("what teams do goes on; look at the folder teams/ and the disk"),
            Self::Archive(_) => Some("nothing was removed; look at the folder archive/ and the disk"),
            Self::Store(polyclaw_store::Error::Full(_)) => Some("free some space; nothing accepted was lost"),
            Self::Store(polyclaw_store::Error::ReadOnly(_)) => {
                Some("check the owner and mode of the home folder")
            }
            Self::Store(polyclaw_store::Error::FilesReplaced(_)) => {
                Some("put the very files back, or restart the instance; nothing more is accepted until then")
            }
            Self::Store(polyclaw_store::Error::Corrupt(_)) => {
                Some("a database file is damaged: `polyclaw doctor` says which; restore it from a copy")
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
        "unknown_team" => Some("`polyclaw teams list` shows the teams there are"),
        "not_a_member" => Some("`polyclaw teams show` lists the members"),
        "too_many_teams" | "too_many_members" | "too_many_tasks" => {
            Some("[teams] in config.toml sets the bounds")
        }
        "member_exists" => {
            Some("`polyclaw teams join --replace`, or replace = true, gives the name to a new session")
        }
        _ => None,
    }
}
