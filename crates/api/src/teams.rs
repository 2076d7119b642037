//! Teams: members, tasks and messages. Callers act as the operator.

pub mod plan;
pub mod tasks;

use polyclaw_domain::id::AgentId;
use polyclaw_domain::run::Artifact;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::task::{TaskNo, TaskVerification, TeamTask, TeamTaskState};
use polyclaw_domain::team::Team;
use polyclaw_domain::team::failures::FailureStreak;
use polyclaw_domain::team::shutdown::ShutdownAnswer;
use polyclaw_domain::team::state::{MemberStatus, TaskCounts};
use polyclaw_domain::team_message::TeamMessage;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListTeamsQuery {
    /// Include teams that have ended.
    #[serde(default)]
    pub all: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTeamBody {
    /// The name: lower-case letters, digits, `_` and `-`; at most 50 characters.
    pub name: String,
    /// The purpose of the team.
    #[serde(default)]
    pub description: String,
    /// The kind of work of its members. Defaults to `general-purpose`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// The session that leads the team. Defaults to the main session of `agent_id` or of the default agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub lead_session_key: Option<SessionKey>,
    /// The agent that leads the team. Defaults to the default agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub agent_id: Option<AgentId>,
    /// Lead the team from a new session, `agent:<agent_id>:team:<name>`.
    #[serde(default)]
    pub own_session: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinTeamBody {
    /// The name of the member.
    pub name: String,
    /// The agent of the member. Defaults to the lead's agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub agent_id: Option<AgentId>,
    /// The model as `provider/model`, if not the agent's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The first message to the member. Without one it waits for messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What the member does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What the member can do. A task may require one of these.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Replace an existing member of that name with a new session.
    #[serde(default)]
    pub replace: bool,
    /// The member can only read until the lead or a person approves the plan it submits.
    #[serde(default)]
    pub plan_mode_required: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListTeamTasksQuery {
    /// Only tasks in this state: `pending`, `claimed`, `in_progress`, `completed` or `failed`.
    #[param(value_type = Option<String>)]
    pub status: Option<TeamTaskState>,
    /// Only tasks of this member.
    pub owner: Option<String>,
    /// Include tasks that have ended.
    #[serde(default)]
    pub all: bool,
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    pub limit: Option<usize>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddTeamTaskBody {
    /// The title of the task, at most 200 characters.
    pub subject: String,
    /// What is to be done, at most 10000 characters.
    #[serde(default)]
    pub description: String,
    /// The title while the task is in progress, such as "Writing tests".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
    /// The numbers of tasks that must be completed first.
    #[serde(default)]
    #[schema(value_type = Vec<i64>)]
    pub depends_on: Vec<TaskNo>,
    /// Additional data of the caller's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Value>,
    /// The only member that may claim the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// A capability that a member needs to claim the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// A check that must pass before the task is completed: `{"command": "…"}` or
    /// `{"agent": {"agent_id", "instructions"}}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub verify: Option<TaskVerification>,
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListTeamMessagesQuery {
    /// The number of messages. At most 1000, default 100.
    pub limit: Option<usize>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendTeamMessageBody {
    /// A member's name or session key, or `lead`. If omitted, all members get the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
    /// The text of the message.
    pub content: String,
    /// A one-line summary for other readers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReadTaskLogQuery {
    /// Only entries after this sequence number.
    pub after: Option<i64>,
    /// The number of entries. At most 1000, default 100.
    pub limit: Option<usize>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetLeadBody {
    /// The session that takes over the lead.
    #[schema(value_type = String)]
    pub session_key: SessionKey,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShutdownTeamBody {
    /// Why the team ends. Its members get this reason.
    #[serde(default)]
    pub reason: String,
    /// Stop all members immediately without asking them.
    #[serde(default)]
    pub force: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TeamList {
    /// The teams.
    pub teams: Vec<TeamView>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TeamView {
    /// The id of the team.
    pub id: String,
    /// The name of the team.
    pub name: String,
    /// The purpose of the team.
    pub description: String,
    /// The kind of work of its members.
    pub agent_type: String,
    /// The state of the team: `active`, `shutting_down` or `shutdown`.
    pub status: String,
    /// The session that leads the team.
    pub lead_session_key: String,
    /// When the team was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
    /// When the team was last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Millis,
}

impl From<Team> for TeamView {
    fn from(team: Team) -> Self {
        Self {
            id: team.id.into(),
            name: team.name,
            description: team.description,
            agent_type: team.agent_type,
            status: team.status.as_str().to_owned(),
            lead_session_key: team.lead.to_string(),
            created_at: team.created_at,
            updated_at: team.updated_at,
        }
    }
}

/// A team with its members and tasks.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TeamDetail {
    #[serde(flatten)]
    pub team: TeamView,
    /// The members.
    pub members: Vec<MemberView>,
    /// Consecutive failed turns of the lead, if any.
    pub failure_streak: Option<FailureStreakView>,
    /// Whether the lead's session is gone, so that the team needs a new lead.
    pub is_lead_lost: bool,
    /// State of the lead: `working`, `idle` or `lost`.
    pub lead_status: String,
    /// Messages to the lead that it has not read.
    pub lead_unread: usize,
    /// The numbers of pending, blocked, in-progress, completed and failed tasks.
    #[schema(value_type = Object)]
    pub counts: TaskCounts,
    /// Turns of the team since a person last wrote to its lead: `used`, `limit`, and whether one `is_waiting`.
    #[schema(value_type = Object)]
    pub turns: TeamTurnsView,
    /// Open tasks, oldest first.
    pub open: Vec<TeamTaskView>,
    /// Recently ended tasks, newest first.
    pub ended: Vec<TeamTaskView>,
}

/// Turns of a team since a person last wrote to its lead.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TeamTurnsView {
    /// The number of turns.
    pub used: u32,
    /// The number of turns after which the team waits for a person.
    pub limit: u32,
    /// Whether a turn waits for a person.
    pub is_waiting: bool,
}

/// Consecutive failed turns. The streak ends with the first successful turn.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct FailureStreakView {
    /// When the first of them failed.
    #[schema(value_type = String, format = DateTime)]
    pub since: Millis,
    /// The error code of the last failure.
    pub code: String,
    /// The number of failed turns.
    pub failures: u32,
    /// The time of the next attempt if messages or tasks wait. Null while an attempt runs or after a stop.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub retry_at: Option<Millis>,
}

impl From<FailureStreak> for FailureStreakView {
    fn from(streak: FailureStreak) -> Self {
        let FailureStreak { since, code, failures, retry_at } = streak;
        Self { since, code, failures, retry_at }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct MemberView {
    /// The name of the member.
    pub name: String,
    /// What the member does.
    pub role: String,
    /// The session of the member.
    pub session_key: String,
    /// The agent of the member.
    pub agent_id: String,
    /// The name of the member's color.
    pub color: String,
    /// What the member can do.
    pub capabilities: Vec<String>,
    /// The state of the member: `working`, `idle`, `closed` or `lost` (its session is gone).
    pub status: String,
    /// `required` or `submitted` while the member may only read because its plan is not approved, else null.
    pub plan: Option<String>,
    /// The tasks the member has claimed.
    pub tasks: Vec<String>,
    /// Consecutive failed turns of the member, if any.
    pub failure_streak: Option<FailureStreakView>,
    /// Messages to the member that it has not read.
    pub unread: usize,
    /// When the member joined.
    #[schema(value_type = String, format = DateTime)]
    pub joined_at: Millis,
    /// When the member was last active.
    #[schema(value_type = String, format = DateTime)]
    pub last_active_at: Millis,
}

impl From<MemberStatus> for MemberView {
    fn from(member_status: MemberStatus) -> Self {
        let status = member_status.status_word().to_owned();
        let MemberStatus { member, tasks, failures: streak, unread, .. } = member_status;
        Self {
            status,
            plan: member.plan.as_ref().map(|plan| plan.as_str().to_owned()),
            name: member.name,
            role: member.role,
            session_key: member.session.to_string(),
            agent_id: member.agent.to_string(),
            color: member.color,
            capabilities: member.capabilities,
            tasks,
            failure_streak: streak.map(FailureStreakView::from),
            unread,
            joined_at: member.joined_at,
            last_active_at: member.last_active_at,
        }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TeamTaskList {
    /// The tasks of this page.
    pub tasks: Vec<TeamTaskView>,
    /// The cursor of the next page. Null on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TeamTaskView {
    /// The number of the task.
    pub task_id: i64,
    /// The title of the task.
    pub subject: String,
    /// What is to be done.
    pub description: String,
    /// The title to display now: `active_form` while in progress, else `subject`.
    pub title: String,
    /// `pending`, `claimed`, `in_progress`, `completed` or `failed`.
    pub status: String,
    /// The member that has claimed or ended the task.
    pub owner: Option<String>,
    /// When the claim expires unless it is renewed.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub lease_until: Option<Millis>,
    /// The only member that may claim the task.
    pub assignee: Option<String>,
    /// A capability that a member needs to claim the task.
    pub capability: Option<String>,
    /// The tasks that must be completed first.
    pub depends_on: Vec<i64>,
    /// The tasks in `depends_on` that are not completed.
    pub blocked_by: Vec<i64>,
    /// Additional data given with the task.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Value>,
    /// A check that must pass before the task is completed: `{"command": "…"}` or `{"agent": {…}}`.
    #[schema(value_type = Option<Object>)]
    pub verify: Option<TaskVerification>,
    /// A note left when the task was released.
    pub note: Option<String>,
    /// The result, once the task has ended.
    pub summary: Option<String>,
    /// The artifacts that the task produced, each with `kind` and `path`.
    #[schema(value_type = Vec<Object>)]
    pub artifacts: Vec<Artifact>,
    /// The member or person that created the task.
    pub created_by: String,
    /// When the task was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
    /// When the task ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Millis>,
}

impl From<TeamTask> for TeamTaskView {
    fn from(task: TeamTask) -> Self {
        Self {
            task_id: task.no.0,
            title: task.display_title().to_owned(),
            status: task.state.as_str().to_owned(),
            owner: task.lease.as_ref().map(|lease| lease.owner.clone()).or(task.ended_by),
            lease_until: task.lease.map(|lease| lease.until),
            subject: task.subject,
            description: task.description,
            assignee: task.assignee,
            capability: task.capability,
            depends_on: task.needs.into_iter().map(|no| no.0).collect(),
            blocked_by: task.blocked_by.into_iter().map(|no| no.0).collect(),
            metadata: task.metadata,
            verify: task.verify,
            note: task.note,
            summary: task.summary,
            artifacts: task.artifacts,
            created_by: task.created_by,
            created_at: task.created_at,
            ended_at: task.ended_at,
        }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TeamMessageList {
    /// The messages, newest first.
    pub messages: Vec<TeamMessageView>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TeamMessageView {
    /// The id of the message.
    pub message_id: String,
    /// The sender.
    pub from: String,
    /// The recipient.
    pub to: String,
    /// `message`, `broadcast`, `shutdown_request`, `shutdown_response`, `plan_approval_request`,
    /// `plan_approval_response`, `idle` or `task`.
    pub r#type: String,
    /// A one-line summary.
    pub summary: String,
    /// The text of the message.
    pub content: String,
    /// For a response: whether the sender agrees.
    pub approve: Option<bool>,
    /// The reason of a shutdown, its rejection or an idle notification.
    pub reason: Option<String>,
    /// The state of delivery: `queued`, `in_prompt`, `read` or `undeliverable`.
    pub state: String,
    /// When the message was sent.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
    /// When the recipient read it.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub read_at: Option<Millis>,
}

impl From<TeamMessage> for TeamMessageView {
    fn from(message: TeamMessage) -> Self {
        Self {
            message_id: message.id.into(),
            from: message.from,
            to: message.to,
            r#type: message.kind.as_str().to_owned(),
            summary: message.summary,
            content: message.content,
            approve: message.approve,
            reason: message.reason,
            state: message.state.as_str().to_owned(),
            created_at: message.created_at,
            read_at: message.read_at,
        }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct AddedTask {
    /// The number of the new task.
    pub task_id: i64,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct JoinedMemberView {
    /// The name of the member.
    pub name: String,
    /// The session of the member.
    pub session_key: String,
    /// Tasks taken over from an earlier member of that name.
    pub inherited: Vec<i64>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct SentTeamMessageView {
    /// The ids of the messages, one per recipient.
    pub message_ids: Vec<String>,
    /// The recipients.
    pub recipients: Vec<String>,
    /// Recipients whose sessions are gone. The message waits for their successors.
    pub lost: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TaskLogView {
    /// The entries, oldest first.
    pub log: Vec<TaskLogEntryView>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TaskLogEntryView {
    /// The sequence number of the entry.
    pub seq: i64,
    /// The number of the task.
    pub task_id: i64,
    /// The kind of change: `created`, `claimed`, `started`, `updated`, `released`, `expired`, `inherited`,
    /// `completed`, `failed`, `unverified`,
    /// `late`, `reopened` or `deleted`.
    pub change: String,
    /// Who made the change.
    pub by: String,
    /// Details, depending on the change.
    #[schema(value_type = Object)]
    pub data: Value,
    /// When the change happened.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TeamShutdownView {
    /// State of the team: `shutdown`, `shutting_down` while members are asked, or `active` if one objected.
    pub status: String,
    /// The `name`, `request_id` and `answer` of each member.
    #[schema(value_type = Vec<Object>)]
    pub members: Vec<MemberShutdownView>,
}

/// A member's answer to a shutdown.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct MemberShutdownView {
    /// The name of the member.
    pub name: String,
    /// The id of the request.
    pub request_id: String,
    /// The answer. Null until the member answers.
    #[schema(value_type = Option<Object>)]
    pub answer: Option<ShutdownAnswer>,
}
