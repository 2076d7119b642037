//! Response types of teams.

use polyclaw_domain::task::TeamTask;
use polyclaw_domain::team::failures::FailureStreak;
use polyclaw_domain::team::state::MemberStatus;
use polyclaw_domain::team::{PlanApproval, Team};
use polyclaw_domain::team_message::TeamMessage;
use polyclaw_domain::time::Millis;
use polyclaw_engine::team::{SpawnedTeammate, TeamMessageReceipt, TeamShutdownStatus, TeamSnapshot};
use polyclaw_store::tasks::TaskEvent;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
pub struct TeamList {
    /// The teams.
    pub teams: Vec<TeamView>,
}

#[derive(Serialize, ToSchema)]
pub struct TeamView {
    /// The id of the team.
    id: String,
    /// The name of the team.
    name: String,
    /// The purpose of the team.
    description: String,
    /// The kind of work of its members.
    agent_type: String,
    /// The state of the team: `active`, `shutting_down` or `shutdown`.
    status: &'static str,
    /// The session that leads the team.
    lead_session_key: String,
    /// When the team was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    /// When the team was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Millis,
}

impl From<Team> for TeamView {
    fn from(team: Team) -> Self {
        Self {
            id: team.id.into(),
            name: team.name,
            description: team.description,
            agent_type: team.agent_type,
            status: team.status.as_str(),
            lead_session_key: team.lead.to_string(),
            created_at: team.created_at,
            updated_at: team.updated_at,
        }
    }
}

/// A team with its members and tasks.
#[derive(Serialize, ToSchema)]
pub struct TeamDetail {
    #[serde(flatten)]
    team: TeamView,
    /// The members.
    members: Vec<MemberView>,
    /// Consecutive failed turns of the lead, if any.
    failure_streak: Option<FailureStreakView>,
    /// Whether the lead's session is gone, so that the team needs a new lead.
    is_lead_lost: bool,
    /// State of the lead: `working`, `idle` or `lost`.
    lead_status: &'static str,
    /// Messages to the lead that it has not read.
    lead_unread: usize,
    /// The numbers of pending, blocked, in-progress, completed and failed tasks.
    #[schema(value_type = Object)]
    counts: Value,
    /// Turns of the team since a person last wrote to its lead: `used`, `limit`, and whether one `is_waiting`.
    #[schema(value_type = Object)]
    turns: Value,
    /// Open tasks, oldest first.
    open: Vec<TeamTaskView>,
    /// Recently ended tasks, newest first.
    ended: Vec<TeamTaskView>,
}

impl From<TeamSnapshot> for TeamDetail {
    fn from(view: TeamSnapshot) -> Self {
        Self {
            lead_status: view.lead_status(),
            team: view.team.into(),
            members: view.members.into_iter().map(MemberView::from).collect(),
            failure_streak: view.lead_failure_streak.map(FailureStreakView::from),
            is_lead_lost: view.is_lead_lost,
            lead_unread: view.lead_unread,
            counts: json!(view.counts),
            turns: json!(view.turns),
            open: view.open.into_iter().map(TeamTaskView::from).collect(),
            ended: view.ended.into_iter().map(TeamTaskView::from).collect(),
        }
    }
}

/// Consecutive failed turns. The streak ends with the first successful turn.
#[derive(Serialize, ToSchema)]
pub struct FailureStreakView {
    /// When the first of them failed.
    #[schema(value_type = String, format = DateTime)]
    since: Millis,
    /// The error code of the last failure.
    code: String,
    /// The number of failed turns.
    failures: u32,
    /// The time of the next attempt if messages or tasks wait. Null while an attempt runs or after a stop.
    #[schema(value_type = Option<String>, format = DateTime)]
    retry_at: Option<Millis>,
}

impl From<FailureStreak> for FailureStreakView {
    fn from(streak: FailureStreak) -> Self {
        let FailureStreak { since, code, failures, retry_at } = streak;
        Self { since, code, failures, retry_at }
    }
}

#[derive(Serialize, ToSchema)]
pub struct MemberView {
    /// The name of the member.
    name: String,
    /// What the member does.
    role: String,
    /// The session of the member.
    session_key: String,
    /// The agent of the member.
    agent_id: String,
    /// The name of the member's color.
    color: String,
    /// What the member can do.
    capabilities: Vec<String>,
    /// The state of the member: `working`, `idle`, `closed` or `lost` (its session is gone).
    status: &'static str,
    /// `required` or `submitted` while the member may only read because its plan is not approved, else null.
    plan: Option<&'static str>,
    /// The tasks the member has claimed.
    tasks: Vec<String>,
    /// Consecutive failed turns of the member, if any.
    failure_streak: Option<FailureStreakView>,
    /// Messages to the member that it has not read.
    unread: usize,
    /// When the member joined.
    #[schema(value_type = String, format = DateTime)]
    joined_at: Millis,
    /// When the member was last active.
    #[schema(value_type = String, format = DateTime)]
    last_active_at: Millis,
}

impl From<MemberStatus> for MemberView {
    fn from(member_status: MemberStatus) -> Self {
        let status = member_status.status_word();
        let MemberStatus { member, tasks, failures: streak, unread, .. } = member_status;
        Self {
            status,
            plan: member.plan.as_ref().map(PlanApproval::as_str),
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

#[derive(Serialize, ToSchema)]
pub struct TeamTaskList {
    /// The tasks of this page.
    pub tasks: Vec<TeamTaskView>,
    /// The cursor of the next page. Null on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct TeamTaskView {
    /// The number of the task.
    task_id: i64,
    /// The title of the task.
    subject: String,
    /// What is to be done.
    description: String,
    /// The title to display now: `active_form` while in progress, else `subject`.
    title: String,
    /// `pending`, `claimed`, `in_progress`, `completed` or `failed`.
    status: &'static str,
    /// The member that has claimed or ended the task.
    owner: Option<String>,
    /// When the claim expires unless it is renewed.
    #[schema(value_type = Option<String>, format = DateTime)]
    lease_until: Option<Millis>,
    /// The only member that may claim the task.
    assignee: Option<String>,
    /// A capability that a member needs to claim the task.
    capability: Option<String>,
    /// The tasks that must be completed first.
    depends_on: Vec<i64>,
    /// The tasks in `depends_on` that are not completed.
    blocked_by: Vec<i64>,
    /// Additional data given with the task.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
    /// A check that must pass before the task is completed: `{"command": "…"}` or `{"agent": {…}}`.
    #[schema(value_type = Option<Object>)]
    verify: Option<Value>,
    /// A note left when the task was released.
    note: Option<String>,
    /// The result, once the task has ended.
    summary: Option<String>,
    /// The artifacts that the task produced, each with `kind` and `path`.
    #[schema(value_type = Vec<Object>)]
    artifacts: Value,
    /// The member or person that created the task.
    created_by: String,
    /// When the task was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    /// When the task ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Millis>,
}

impl From<TeamTask> for TeamTaskView {
    fn from(task: TeamTask) -> Self {
        Self {
            task_id: task.no.0,
            title: task.display_title().to_owned(),
            status: task.state.as_str(),
            owner: task.lease.as_ref().map(|lease| lease.owner.clone()).or(task.ended_by),
            lease_until: task.lease.map(|lease| lease.until),
            subject: task.subject,
            description: task.description,
            assignee: task.assignee,
            capability: task.capability,
            depends_on: task.needs.into_iter().map(|no| no.0).collect(),
            blocked_by: task.blocked_by.into_iter().map(|no| no.0).collect(),
            metadata: task.metadata,
            verify: task.verify.map(|verify| json!(verify)),
            note: task.note,
            summary: task.summary,
            artifacts: json!(task.artifacts),
            created_by: task.created_by,
            created_at: task.created_at,
            ended_at: task.ended_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct TeamMessageList {
    /// The messages, newest first.
    pub messages: Vec<TeamMessageView>,
}

#[derive(Serialize, ToSchema)]
pub struct TeamMessageView {
    /// The id of the message.
    message_id: String,
    /// The sender.
    from: String,
    /// The recipient.
    to: String,
    /// `message`, `broadcast`, `shutdown_request`, `shutdown_response`, `plan_approval_request`,
    /// `plan_approval_response`, `idle` or `task`.
    r#type: &'static str,
    /// A one-line summary.
    summary: String,
    /// The text of the message.
    content: String,
    /// For a response: whether the sender agrees.
    approve: Option<bool>,
    /// The reason of a shutdown, its rejection or an idle notification.
    reason: Option<String>,
    /// The state of delivery: `queued`, `in_prompt`, `read` or `undeliverable`.
    state: &'static str,
    /// When the message was sent.
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    /// When the recipient read it.
    #[schema(value_type = Option<String>, format = DateTime)]
    read_at: Option<Millis>,
}

impl From<TeamMessage> for TeamMessageView {
    fn from(message: TeamMessage) -> Self {
        Self {
            message_id: message.id.into(),
            from: message.from,
            to: message.to,
            r#type: message.kind.as_str(),
            summary: message.summary,
            content: message.content,
            approve: message.approve,
            reason: message.reason,
            state: message.state.as_str(),
            created_at: message.created_at,
            read_at: message.read_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct AddedTask {
    /// The number of the new task.
    pub task_id: i64,
}

#[derive(Serialize, ToSchema)]
pub struct JoinedMemberView {
    /// The name of the member.
    name: String,
    /// The session of the member.
    session_key: String,
    /// Tasks taken over from an earlier member of that name.
    inherited: Vec<i64>,
}

impl From<SpawnedTeammate> for JoinedMemberView {
    fn from(spawned: SpawnedTeammate) -> Self {
        Self {
            name: spawned.name,
            session_key: spawned.session_key.to_string(),
            inherited: spawned.inherited.into_iter().map(|no| no.0).collect(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct SentTeamMessageView {
    /// The ids of the messages, one per recipient.
    message_ids: Vec<String>,
    /// The recipients.
    recipients: Vec<String>,
    /// Recipients whose sessions are gone. The message waits for their successors.
    lost: Vec<String>,
}

impl From<TeamMessageReceipt> for SentTeamMessageView {
    fn from(receipt: TeamMessageReceipt) -> Self {
        let ids = receipt.message_ids.into_iter().map(String::from).collect();
        Self { message_ids: ids, recipients: receipt.recipients, lost: receipt.lost }
    }
}

#[derive(Serialize, ToSchema)]
pub struct TaskLogView {
    /// The entries, oldest first.
    pub log: Vec<TaskLogEntryView>,
}

#[derive(Serialize, ToSchema)]
pub struct TaskLogEntryView {
    /// The sequence number of the entry.
    seq: i64,
    /// The number of the task.
    task_id: i64,
    /// The kind of change: `created`, `claimed`, `started`, `updated`, `released`, `expired`, `inherited`,
    /// `completed`, `failed`, `unverified`,
    /// `late`, `reopened` or `deleted`.
    change: &'static str,
    /// Who made the change.
    by: String,
    /// Details, depending on the change.
    #[schema(value_type = Object)]
    data: Value,
    /// When the change happened.
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
}

impl From<TaskEvent> for TaskLogEntryView {
    fn from(event: TaskEvent) -> Self {
        Self {
            seq: event.seq,
            task_id: event.task.0,
            change: event.kind.as_str(),
            by: event.actor,
            data: event.data,
            created_at: event.created_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct TeamShutdownView {
    /// State of the team: `shutdown`, `shutting_down` while members are asked, or `active` if one objected.
    status: &'static str,
    /// The `name`, `request_id` and `answer` of each member.
    #[schema(value_type = Vec<Object>)]
    members: Value,
}

impl From<TeamShutdownStatus> for TeamShutdownView {
    fn from(ended: TeamShutdownStatus) -> Self {
        Self { status: ended.status.as_str(), members: json!(ended.members) }
    }
}
