//! Teams as people and programs are shown them.

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
    pub teams: Vec<TeamView>,
}

#[derive(Serialize, ToSchema)]
pub struct TeamView {
    id: String,
    name: String,
    description: String,
    agent_type: String,
    /// `active`, `shutting_down` or `shutdown`.
    status: &'static str,
    lead_session_key: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
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

/// A team with its members and its open tasks.
#[derive(Serialize, ToSchema)]
pub struct TeamDetail {
    #[serde(flatten)]
    team: TeamView,
    members: Vec<MemberView>,
    /// Of the lead.
    failure_streak: Option<FailureStreakView>,
    /// The lead's session is gone: the team waits for another.
    is_lead_lost: bool,
    /// `working`, `idle` or `lost`.
    lead_status: &'static str,
    /// Letters to the lead that it has not read yet.
    lead_unread: usize,
    /// How many tasks are pending, blocked, in progress, completed and failed.
    #[schema(value_type = Object)]
    counts: Value,
    /// Turns that the team has had since a person last wrote to its lead: `used`, `limit`, and whether one `is_waiting`.
    #[schema(value_type = Object)]
    turns: Value,
    /// Those that have not ended, the oldest first.
    open: Vec<TeamTaskView>,
    /// The last that ended, the newest first.
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

/// Turns that fail, one after the other. Gone with the first that ends well.
#[derive(Serialize, ToSchema)]
pub struct FailureStreakView {
    #[schema(value_type = String, format = DateTime)]
    since: Millis,
    /// Of the error that ended the last of them.
    code: String,
    failures: u32,
    /// When the next is tried, if mail or work waits. None while one is on its way, or somebody stopped it.
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
    name: String,
    role: String,
    session_key: String,
    agent_id: String,
    color: String,
    capabilities: Vec<String>,
    /// `working`, `idle`, `closed` or `lost`.
    status: &'static str,
    /// `required` or `submitted` while it may only read and its plan is not approved; else null.
    plan: Option<&'static str>,
    /// What it holds.
    tasks: Vec<String>,
    failure_streak: Option<FailureStreakView>,
    /// Letters to it that it has not read yet.
    unread: usize,
    #[schema(value_type = String, format = DateTime)]
    joined_at: Millis,
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
    pub tasks: Vec<TeamTaskView>,
    pub next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct TeamTaskView {
    task_id: i64,
    subject: String,
    description: String,
    /// What it is called now.
    title: String,
    status: &'static str,
    owner: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime)]
    lease_until: Option<Millis>,
    assignee: Option<String>,
    capability: Option<String>,
    depends_on: Vec<i64>,
    /// Those of them that are not completed.
    blocked_by: Vec<i64>,
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
    /// What must be true before it counts as completed: `{"command": "…"}` or `{"agent": {…}}`.
    #[schema(value_type = Option<Object>)]
    verify: Option<Value>,
    note: Option<String>,
    summary: Option<String>,
    #[schema(value_type = Vec<Object>)]
    artifacts: Value,
    created_by: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
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
    pub messages: Vec<TeamMessageView>,
}

#[derive(Serialize, ToSchema)]
pub struct TeamMessageView {
    message_id: String,
    from: String,
    to: String,
    r#type: &'static str,
    summary: String,
    content: String,
    /// Of an answer: whether its writer agrees.
    approve: Option<bool>,
    /// Why a team or a member is to end, or goes on; why a member rests.
    reason: Option<String>,
    /// `queued`, `in_prompt`, `read` or `undeliverable`.
    state: &'static str,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
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
    pub task_id: i64,
}

#[derive(Serialize, ToSchema)]
pub struct JoinedMemberView {
    name: String,
    session_key: String,
    /// Tasks an earlier life of it held.
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
    message_ids: Vec<String>,
    recipients: Vec<String>,
    /// Those of them whose sessions are gone: it waits for whoever takes their places.
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
    pub log: Vec<TaskLogEntryView>,
}

#[derive(Serialize, ToSchema)]
pub struct TaskLogEntryView {
    seq: i64,
    task_id: i64,
    /// `created`, `claimed`, `started`, `updated`, `released`, `expired`, `inherited`, `completed`, `failed`, `unverified`,
    /// `late`, `reopened` or `deleted`.
    change: &'static str,
    by: String,
    #[schema(value_type = Object)]
    data: Value,
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
    /// Of the team: `shutdown`, `shutting_down` while members are asked, or `active` if one objected.
    status: &'static str,
    /// Each member's `name`, `request_id` and `answer`.
    #[schema(value_type = Vec<Object>)]
    members: Value,
}

impl From<TeamShutdownStatus> for TeamShutdownView {
    fn from(ended: TeamShutdownStatus) -> Self {
        Self { status: ended.status.as_str(), members: json!(ended.members) }
    }
}
