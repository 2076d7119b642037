//! Teams: a lead session, member sessions, a task list and mailboxes.

pub mod failures;
pub mod idle;
pub mod plan;
pub mod shutdown;
pub mod state;
pub mod tools;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::authority::Authority;
use crate::channel::ChatAddress;
use crate::id::{AgentId, TeamId, TraceId};
use crate::redact::quote_safely;
use crate::session_key::SessionKey;
use crate::time::Millis;
pub use plan::PlanApproval;

/// The recipient name of every team's lead.
pub const LEAD_NAME: &str = "lead";
/// The sender name of messages from the runtime.
pub const RUNTIME_NAME: &str = "team";
/// The sender name of messages from people who operate the instance.
pub const OPERATOR_NAME: &str = "operator";

/// The recipient name for all members of a team.
pub const EVERYBODY_NAME: &str = "all";
/// Names that no member may have.
const RESERVED_NAMES: [&str; 4] = [LEAD_NAME, RUNTIME_NAME, OPERATOR_NAME, EVERYBODY_NAME];

const MEMBER_COLORS: [&str; 8] = ["blue", "green", "yellow", "magenta", "cyan", "red", "white", "gray"];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a valid name: expected a lower-case letter or digit, followed by up to 49 of a-z, 0-9, '_' \
         and '-'"
)]
pub struct InvalidTeamName(pub String);

/// Checks the name of a team or member: `^[a-z0-9][a-z0-9_-]{0,49}$`. It is also a folder name.
pub fn check_team_name(text: &str) -> Result<(), InvalidTeamName> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let first = text.chars().next().is_some_and(is_plain);
    let rest = text.chars().all(|c| is_plain(c) || matches!(c, '_' | '-'));
    let refused = || InvalidTeamName(quote_safely(text));
    if first && rest && text.len() <= 50 { Ok(()) } else { Err(refused()) }
}

/// Checks the name of a member. Reserved names are rejected.
pub fn check_member_name(text: &str) -> Result<(), TeamRefusal> {
    check_team_name(text)?;
    match RESERVED_NAMES.contains(&text) {
        true => Err(TeamRefusal::Reserved(text.to_owned())),
        false => Ok(()),
    }
}

/// Returns the hex value of a member's color, as pages show it.
pub fn hex_color(name: &str) -> &'static str {
    const HEX_COLORS: [&str; 8] =
        ["#4A7BD9", "#3E9B5F", "#C9A227", "#B0509E", "#2E9AA6", "#D94A4A", "#9AA0A6", "#6B7280"];
    MEMBER_COLORS.iter().position(|color| *color == name).map_or(HEX_COLORS[7], |at| HEX_COLORS[at])
}

/// Returns the color of the n-th member.
pub fn member_color(n: usize) -> &'static str {
    MEMBER_COLORS[n % MEMBER_COLORS.len()]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TeamStatus {
    Active,
    ShuttingDown,
    Shutdown,
}

impl TeamStatus {
    const ALL: [Self; 3] = [Self::Active, Self::ShuttingDown, Self::Shutdown];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::ShuttingDown => "shutting_down",
            Self::Shutdown => "shutdown",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Team {
    pub id: TeamId,
    pub name: String,
    pub description: String,
    /// The role of its members, as given by its creator.
    pub agent_type: String,
    pub status: TeamStatus,
    pub lead: SessionKey,
    pub lead_agent: AgentId,
    /// Trace of the last request of a person to the lead. Everything the team does counts towards it.
    pub trace: TraceId,
    /// Where that person reads the lead's answers.
    pub reply_to: Vec<ChatAddress>,
    /// The lowest authority among the people the team has worked for. It bounds the authority of its members.
    pub authority: Authority,
    pub created_at: Millis,
    pub updated_at: Millis,
}

impl Team {
    /// Returns the senders on whose behalf the team works, as sender rules name them.
    pub fn requested_by(&self) -> Vec<String> {
        self.reply_to.iter().map(ChatAddress::sender_key).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    Active,
    /// A shutdown closed its session.
    Closed,
    /// Its session no longer exists.
    Lost,
}

impl MemberState {
    const ALL: [Self; 3] = [Self::Active, Self::Closed, Self::Lost];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Closed => "closed",
            Self::Lost => "lost",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// A team member. The name identifies it; over time it can have several sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamMember {
    pub team: TeamId,
    pub name: String,
    pub session: SessionKey,
    pub agent: AgentId,
    pub role: String,
    pub capabilities: Vec<String>,
    pub color: String,
    pub state: MemberState,
    /// While set, the member has only read tools. `None` if no plan was required or the plan was approved.
    pub plan: Option<PlanApproval>,
    pub joined_at: Millis,
    pub last_active_at: Millis,
}

/// Maximum number of capabilities of one member: a claim checks each.
pub const MAX_CAPABILITIES: usize = 8;

/// A session's role in a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TeamRole {
    Lead,
    Member,
}

impl TeamRole {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lead => "lead",
            Self::Member => "member",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Lead, Self::Member].into_iter().find(|role| role.as_str() == text)
    }
}

/// Limits of agent teams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TeamLimits {
    /// Maximum number of active teams.
    #[schemars(range(min = 1, max = 100))]
    pub max_teams: u32,
    /// Maximum number of members of one team, without its lead.
    #[schemars(range(min = 1, max = 50))]
    pub max_members: u32,
    /// Maximum number of unfinished tasks of one team.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_open_tasks: u32,
    /// Maximum length of a message between members, in bytes.
    #[schemars(range(min = 100, max = 1_000_000))]
    pub max_message_bytes: u32,
    /// How long an inactive member keeps a claimed task, in seconds.
    #[schemars(range(min = 5))]
    pub lease_seconds: u32,
    /// How long a member may take to answer a shutdown request, in seconds.
    #[schemars(range(min = 1))]
    pub shutdown_seconds: u32,
    /// Number of turns that members may cause each other after one message of a person to the lead, before a person
    /// must continue.
    pub automatic_turns: u32,
    /// How long the folder of an ended team is kept, in days; 0 keeps it forever.
    pub keep_ended_days: u32,
}

impl Default for TeamLimits {
    fn default() -> Self {
        Self {
            max_teams: 10,
            max_members: 10,
            max_open_tasks: 1_000,
            max_message_bytes: 100_000,
            lease_seconds: 600,
            shutdown_seconds: 60,
            automatic_turns: 500,
            keep_ended_days: 30,
        }
    }
}

/// Why a team request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TeamRefusal {
    #[error("{0}")]
    Name(#[from] InvalidTeamName),
    #[error("no member can be named '{0}': the name is reserved in every team")]
    Reserved(String),
    #[error("there is no team '{0}'")]
    Unknown(String),
    #[error("there is already a team '{0}'")]
    Exists(String),
    #[error("the team '{0}' is {status}", status = .1.as_str())]
    NotActive(String, TeamStatus),
    #[error("there are {0} teams; at most {0} are allowed")]
    TooManyTeams(u32),
    #[error("people who are not owners already have {0} teams or more; together they may have at most {0}")]
    TooManyTeamsOfOthers(u32),
    #[error("the team has {0} members; at most {0} are allowed")]
    TooManyMembers(u32),
    #[error("the team already has a member '{0}'")]
    MemberExists(String),
    #[error("'{0}' is not a member of this team")]
    NotAMember(String),
    #[error("this session is not in the team '{0}'")]
    NotInTeam(String),
    #[error("only the lead may do this")]
    NotLead,
    #[error("the message has {0} bytes; at most {1} are allowed")]
    TooLong(usize, usize),
    #[error("{0}")]
    Message(&'static str),
    #[error("there is no open request '{0}' for you")]
    UnknownRequest(String),
    #[error("'{0}' has no plan that waits for approval")]
    NoPlan(String),
}

impl TeamRefusal {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Name(_) | Self::Reserved(_) => "invalid_name",
            Self::Unknown(_) => "unknown_team",
            Self::Exists(_) => "team_exists",
            Self::NotActive(..) => "team_not_active",
            Self::TooManyTeams(_) | Self::TooManyTeamsOfOthers(_) => "too_many_teams",
            Self::TooManyMembers(_) => "too_many_members",
            Self::MemberExists(_) => "member_exists",
            Self::NotAMember(_) => "not_a_member",
            Self::NotInTeam(_) => "not_in_team",
            Self::NotLead => "not_lead",
            Self::TooLong(..) | Self::Message(_) => "invalid_message",
            Self::UnknownRequest(_) | Self::NoPlan(_) => "unknown_request",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn team_names_are_short_plain_words() {
        for good in ["a", "0", "web-team", "a_b-c", &"x".repeat(50)] {
            assert!(check_team_name(good).is_ok(), "{good}");
        }
        for bad in ["", "test@team", "A", "-a", "_a", ".trash", "a/b", "a b", "ä", &"x".repeat(51)] {
            assert!(check_team_name(bad).is_err(), "{bad}");
        }
        for taken in ["lead", "team", "operator", "all"] {
            assert!(check_team_name(taken).is_ok(), "{taken}");
            let refused = check_member_name(taken).unwrap_err();
            assert_eq!((refused.code(), refused), ("invalid_name", TeamRefusal::Reserved(taken.into())));
        }
    }
}
