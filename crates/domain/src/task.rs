//! Team tasks: their states, who may change them, and their dependencies.

mod dependencies;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{AgentId, TeamId};
use crate::run::Artifact;
use crate::session_key::SessionKey;
use crate::time::Millis;

pub use dependencies::{InvalidDependency, check_dependencies};

pub const MAX_SUBJECT_CHARS: usize = 200;
pub const MAX_DESCRIPTION_CHARS: usize = 10_000;
pub const MAX_ACTIVE_FORM_CHARS: usize = 100;
pub const MAX_SUMMARY_CHARS: usize = 1_000;
/// Maximum number of dependencies of one task.
pub const MAX_DEPENDENCIES: usize = 50;

/// The number of a task in its team, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct TaskNo(pub i64);

impl fmt::Display for TaskNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Accepts numbers and text, because models often write a number as text.
impl<'de> Deserialize<'de> for TaskNo {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum TaskNoInput {
            Number(i64),
            Text(String),
        }
        let number = match TaskNoInput::deserialize(deserializer)? {
            TaskNoInput::Number(number) => Some(number),
            TaskNoInput::Text(text) => text.trim().trim_start_matches('#').parse().ok(),
        };
        number.map(Self).ok_or_else(|| serde::de::Error::custom("a task id must be a number"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TeamTaskState {
    Pending,
    Claimed,
    InProgress,
    Completed,
    Failed,
}

impl TeamTaskState {
    pub const ALL: [Self; 5] =
        [Self::Pending, Self::Claimed, Self::InProgress, Self::Completed, Self::Failed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Claimed => "claimed",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Returns whether a member works on the task.
    pub fn is_owned(self) -> bool {
        matches!(self, Self::Claimed | Self::InProgress)
    }

    pub fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

/// A condition that must hold before a task counts as completed. The runtime checks it, not the member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TaskVerification {
    /// A command line that must exit with code 0 in the workspace of the member that did the task.
    Command(String),
    /// An agent that judges the result and answers PASS or FAIL.
    Agent { agent_id: AgentId, instructions: String },
}

/// The member that holds a task, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskLease {
    pub owner: String,
    pub session: SessionKey,
    /// Increases with every claim, so that work under an older claim cannot end the task.
    pub fencing_token: i64,
    pub until: Millis,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TeamTask {
    pub team: TeamId,
    pub no: TaskNo,
    pub subject: String,
    pub description: String,
    /// Shown while a member works on the task: "Writing the tests".
    pub active_form: Option<String>,
    pub metadata: Option<Value>,
    /// The only member that may claim the task.
    pub assignee: Option<String>,
    /// The capability that a member needs to claim the task.
    pub capability: Option<String>,
    pub verify: Option<TaskVerification>,
    pub state: TeamTaskState,
    pub lease: Option<TaskLease>,
    /// The member that ended the task.
    pub ended_by: Option<String>,
    pub summary: Option<String>,
    pub note: Option<String>,
    pub artifacts: Vec<Artifact>,
    pub needs: Vec<TaskNo>,
    /// The dependencies that are not completed, computed when the task is read.
    pub blocked_by: Vec<TaskNo>,
    pub created_by: String,
    pub created_at: Millis,
    pub claimed_at: Option<Millis>,
    pub ended_at: Option<Millis>,
}

impl TeamTask {
    /// Returns an unclaimed task without dependencies. The task list assigns its number.
    pub fn new_pending(team: TeamId, subject: String, created_by: &str, now: Millis) -> Self {
        Self {
            team,
            no: TaskNo(0),
            subject,
            description: String::new(),
            active_form: None,
            metadata: None,
            assignee: None,
            capability: None,
            verify: None,
            state: TeamTaskState::Pending,
            lease: None,
            ended_by: None,
            summary: None,
            note: None,
            artifacts: Vec::new(),
            needs: Vec::new(),
            blocked_by: Vec::new(),
            created_by: created_by.to_owned(),
            created_at: now,
            claimed_at: None,
            ended_at: None,
        }
    }

    /// Returns the title to show, which differs while a member works on the task.
    pub fn display_title(&self) -> &str {
        match &self.active_form {
            Some(form) if self.state.is_owned() => form,
            _ => &self.subject,
        }
    }
}

/// A member that acts on the task list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskMember {
    pub name: String,
    pub session: SessionKey,
    pub capabilities: Vec<String>,
    /// May end and release tasks of other members.
    pub is_lead: bool,
}

/// Why a task was not claimed, changed or ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskRefusal {
    #[error("there is no task {0}")]
    Unknown(TaskNo),
    #[error("task {0} is {state}", state = .1.as_str())]
    Ended(TaskNo, TeamTaskState),
    #[error("task {0} was already claimed by {1}")]
    Taken(TaskNo, String),
    #[error("task {0} is blocked by {list}", list = format_numbers(.1))]
    Blocked(TaskNo, Vec<TaskNo>),
    #[error("task {0} is assigned to {1}; nobody else can claim it")]
    Assigned(TaskNo, String),
    #[error("task {0} requires a member with the capability '{1}'")]
    Incapable(TaskNo, String),
    #[error("no task is available to claim")]
    NothingFree,
    #[error("you do not hold task {0}: claim it first")]
    NotYours(TaskNo),
    #[error("another member has claimed task {0} since; your result is stored as a note")]
    Late(TaskNo),
    #[error("{0}")]
    Edge(#[from] InvalidDependency),
    #[error("there are {0} open tasks; at most {1} are allowed")]
    TooMany(usize, usize),
    #[error("{field} has {len} characters; at most {most} are allowed")]
    TooLong { field: &'static str, len: usize, most: usize },
    #[error("{0} must not be empty")]
    Empty(&'static str),
    #[error("{0} must be a JSON object")]
    NotAnObject(&'static str),
    #[error("task {0} has not ended")]
    NotEnded(TaskNo),
    #[error("the check did not pass: {0}")]
    NotVerified(String),
    #[error("the check could not run, so the task is unchanged: {0}")]
    NotChecked(String),
}

impl TaskRefusal {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown_task",
            Self::Ended(..) => "task_ended",
            Self::Taken(..) => "task_taken",
            Self::Blocked(..) => "task_blocked",
            Self::Assigned(..) => "task_assigned",
            Self::Incapable(..) => "task_capability",
            Self::NothingFree => "no_task_free",
            Self::NotYours(_) => "task_not_yours",
            Self::Late(_) => "stale_claim",
            Self::Edge(edge) => edge.code(),
            Self::TooMany(..) => "too_many_tasks",
            Self::TooLong { .. } | Self::Empty(_) | Self::NotAnObject(_) => "invalid_task",
            Self::NotEnded(_) => "task_not_ended",
            Self::NotVerified(_) | Self::NotChecked(_) => "task_not_verified",
        }
    }

    pub fn blocked_by(&self) -> &[TaskNo] {
        if let Self::Blocked(_, needs) = self { needs } else { &[] }
    }
}

fn format_numbers(list: &[TaskNo]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns why the member cannot claim this task now. `None` if it can.
pub fn claim_refusal(task: &TeamTask, worker: &TaskMember) -> Option<TaskRefusal> {
    let no = task.no;
    if task.state.has_ended() {
        return Some(TaskRefusal::Ended(no, task.state));
    }
    if let Some(lease) = &task.lease {
        return Some(TaskRefusal::Taken(no, lease.owner.clone()));
    }
    if let Some(assignee) = task.assignee.as_ref().filter(|name| **name != worker.name) {
        return Some(TaskRefusal::Assigned(no, assignee.clone()));
    }
    let lacks = |needed: &&String| !worker.capabilities.contains(needed);
    if let Some(needed) = task.capability.as_ref().filter(lacks) {
        return Some(TaskRefusal::Incapable(no, needed.clone()));
    }
    (!task.blocked_by.is_empty()).then(|| TaskRefusal::Blocked(no, task.blocked_by.clone()))
}

/// Checks that the member may start, release or end a claimed task. Returns the fencing token that must still hold.
pub fn check_lease(task: &TeamTask, worker: &TaskMember) -> Result<i64, TaskRefusal> {
    match &task.lease {
        _ if task.state.has_ended() => Err(TaskRefusal::Ended(task.no, task.state)),
        Some(lease) if worker.is_lead || lease.session == worker.session => Ok(lease.fencing_token),
        // Held by another member, or by a newer session of the same name: an earlier session cannot end the work of a
        // later one.
        Some(_) => Err(TaskRefusal::Late(task.no)),
        None => Err(TaskRefusal::NotYours(task.no)),
    }
}

/// Like [`check_lease`], for ending a task. The lead may also end unclaimed tasks, without a fencing token, so that
/// none is stuck.
pub fn check_may_end(task: &TeamTask, worker: &TaskMember) -> Result<i64, TaskRefusal> {
    match check_lease(task, worker) {
        Err(TaskRefusal::NotYours(_)) if worker.is_lead => Ok(0),
        decided => decided,
    }
}

/// Checks the length of a text field.
pub fn check_text_len(field: &'static str, text: &str, most: usize) -> Result<(), TaskRefusal> {
    match text.chars().count() {
        len if len > most => Err(TaskRefusal::TooLong { field, len, most }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
