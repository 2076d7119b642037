//! Teams: members, tasks and messages. Callers act as the operator.

pub mod plan;
pub mod tasks;
mod view;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::instance::TokenAccess;
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::task::{TaskNo, TaskVerification, TeamTask, TeamTaskState};
use polyclaw_domain::team::{TeamRefusal, check_team_name};
use polyclaw_domain::team_message::TeamMessageKind;
use polyclaw_engine::Error as EngineError;
use polyclaw_engine::team::{NewMember, NewTeam, NewTeamTask, OutgoingTeamMessage, TaskFilter, TeamActor};
use serde::Deserialize;
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::access::AccessLevel;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathId, QueryParams};
use crate::paging::{self, PagePosition, PageRequest};
use crate::state::AppState;
use view::{
    AddedTask, JoinedMemberView, SentTeamMessageView, TaskLogEntryView, TaskLogView, TeamDetail, TeamList,
    TeamMessageList, TeamMessageView, TeamShutdownView, TeamTaskList, TeamTaskView, TeamView,
};

/// The two parts of the task list, as named in cursors.
const OPEN_TASKS_LIST: &str = "open";
const ENDED_TASKS_LIST: &str = "ended";

fn operator_actor(app: &AppState) -> TeamActor {
    TeamActor::Operator { call: app.engine.next_id() }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListTeamsQuery {
    /// Include teams that have ended.
    #[serde(default)]
    all: bool,
}

/// Lists teams.
#[utoipa::path(get, path = "/teams", tag = "teams", params(ListTeamsQuery), responses((status = 200, body = TeamList)))]
pub async fn list_teams(
    State(app): State<AppState>,
    QueryParams(which): QueryParams<ListTeamsQuery>,
) -> Result<Json<TeamList>> {
    let teams = app.engine.list_teams(which.all).await?;
    Ok(Json(TeamList { teams: teams.into_iter().map(TeamView::from).collect() }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTeamBody {
    /// The name: lower-case letters, digits, `_` and `-`; at most 50 characters.
    name: String,
    /// The purpose of the team.
    #[serde(default)]
    description: String,
    /// The kind of work of its members. Defaults to `general-purpose`.
    agent_type: Option<String>,
    /// The session that leads the team. Defaults to the main session of `agent_id` or of the default agent.
    #[schema(value_type = Option<String>)]
    lead_session_key: Option<SessionKey>,
    /// The agent that leads the team. Defaults to the default agent.
    #[schema(value_type = Option<String>)]
    agent_id: Option<AgentId>,
    /// Lead the team from a new session, `agent:<agent_id>:team:<name>`.
    #[serde(default)]
    own_session: bool,
}

/// Creates a team.
#[utoipa::path(post, path = "/teams", tag = "teams", request_body = CreateTeamBody, responses((status = 201, body = TeamView)))]
pub async fn create_team(
    State(app): State<AppState>,
    JsonBody(body): JsonBody<CreateTeamBody>,
) -> Result<(StatusCode, Json<TeamView>)> {
    let agent = body.agent_id.unwrap_or_else(|| app.engine.settings().default_agent.clone());
    let lead = match body.lead_session_key {
        Some(key) => key,
        None if body.own_session => {
            check_team_name(&body.name).map_err(|error| EngineError::from(TeamRefusal::from(error)))?;
            let key = SessionKey::from_parts(&agent, &["team", &body.name]);
            app.engine.create_session(&key, &agent, Some(body.name.clone())).await?.key
        }
        None => {
            let main = app.engine.settings().inbound.main_session(&agent);
            app.engine.create_session(&main, &agent, None).await?.key
        }
    };
    let new = NewTeam {
        name: body.name,
        description: body.description,
        agent_type: body.agent_type.unwrap_or_else(|| "general-purpose".to_owned()),
        lead,
        turn: None,
    };
    let team = app.engine.create_team(&operator_actor(&app), new).await?;
    Ok((StatusCode::CREATED, Json(team.into())))
}

/// Returns a team with its members and tasks.
#[utoipa::path(
    get, path = "/teams/{name}", tag = "teams", params(("name" = String, Path)),
    responses((status = 200, body = TeamDetail)),
)]
pub async fn show_team(State(app): State<AppState>, PathId(name): PathId) -> Result<Json<TeamDetail>> {
    Ok(Json(app.engine.team_snapshot(&operator_actor(&app), &name).await?.into()))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinTeamBody {
    /// The name of the member.
    name: String,
    /// The agent of the member. Defaults to the lead's agent.
    #[schema(value_type = Option<String>)]
    agent_id: Option<AgentId>,
    /// The model as `provider/model`, if not the agent's own.
    model: Option<String>,
    /// The first message to the member. Without one it waits for messages.
    task: Option<String>,
    /// What the member does.
    role: Option<String>,
    /// What the member can do. A task may require one of these.
    #[serde(default)]
    capabilities: Vec<String>,
    /// Replace an existing member of that name with a new session.
    #[serde(default)]
    replace: bool,
    /// The member can only read until the lead or a person approves the plan it submits.
    #[serde(default)]
    plan_mode_required: bool,
}

/// Adds a member to a team.
#[utoipa::path(
    post, path = "/teams/{name}/members", tag = "teams", params(("name" = String, Path)), request_body = JoinTeamBody,
    responses((status = 201, body = JoinedMemberView)),
)]
pub async fn join_team(
    State(app): State<AppState>,
    PathId(name): PathId,
    JsonBody(body): JsonBody<JoinTeamBody>,
) -> Result<(StatusCode, Json<JoinedMemberView>)> {
    let model = body.model.as_deref().map(ModelRef::parse).transpose();
    let new = NewMember {
        name: body.name,
        agent: body.agent_id,
        model: model.map_err(|error| Error::invalid_field("model", error))?,
        task: body.task,
        role: body.role,
        capabilities: body.capabilities,
        replaces: body.replace,
        plan_mode_required: body.plan_mode_required,
    };
    let spawned = app.engine.spawn_teammate(&operator_actor(&app), &name, new).await?;
    Ok((StatusCode::CREATED, Json(spawned.into())))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListTeamTasksQuery {
    /// Only tasks in this state: `pending`, `claimed`, `in_progress`, `completed` or `failed`.
    #[param(value_type = Option<String>)]
    status: Option<TeamTaskState>,
    /// Only tasks of this member.
    owner: Option<String>,
    /// Include tasks that have ended.
    #[serde(default)]
    all: bool,
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

/// Lists the tasks of a team: open ones, then ended ones, each newest first.
#[utoipa::path(
    get, path = "/teams/{name}/tasks", tag = "teams", params(("name" = String, Path), ListTeamTasksQuery),
    responses((status = 200, body = TeamTaskList)),
)]
pub async fn list_team_tasks(
    State(app): State<AppState>,
    PathId(name): PathId,
    QueryParams(looked): QueryParams<ListTeamTasksQuery>,
) -> Result<Json<TeamTaskList>> {
    let page = PageRequest::from_query("team_tasks", looked.limit, looked.cursor.as_deref())?;
    let after = page.after.as_ref().map(|place| match place.id.as_str() {
        ENDED_TASKS_LIST => Ok((true, TaskNo(place.at))),
        OPEN_TASKS_LIST => Ok((false, TaskNo(place.at))),
        _ => Err(paging::invalid_cursor()),
    });
    let wanted = TaskFilter {
        state: looked.status,
        owner: looked.owner,
        with_ended: looked.all,
        after: after.transpose()?,
        limit: Some(page.row_limit()),
        ..TaskFilter::default()
    };
    let mut found = app.engine.list_tasks(&operator_actor(&app), &name, wanted).await?;
    let part = |task: &TeamTask| if task.ended_at.is_some() { ENDED_TASKS_LIST } else { OPEN_TASKS_LIST };
    let next_cursor =
        page.cut_page(&mut found, |task| PagePosition { at: task.no.0, id: part(task).to_owned() });
    Ok(Json(TeamTaskList { tasks: found.into_iter().map(TeamTaskView::from).collect(), next_cursor }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddTeamTaskBody {
    /// The title of the task, at most 200 characters.
    subject: String,
    /// What is to be done, at most 10000 characters.
    #[serde(default)]
    description: String,
    /// The title while the task is in progress, such as "Writing tests".
    active_form: Option<String>,
    /// The numbers of tasks that must be completed first.
    #[serde(default)]
    #[schema(value_type = Vec<i64>)]
    depends_on: Vec<TaskNo>,
    /// Additional data of the caller's choice.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
    /// The only member that may claim the task.
    assignee: Option<String>,
    /// A capability that a member needs to claim the task.
    capability: Option<String>,
    /// A check that must pass before the task is completed: `{"command": "…"}` or
    /// `{"agent": {"agent_id", "instructions"}}`.
    #[schema(value_type = Option<Object>)]
    verify: Option<TaskVerification>,
}

/// Adds a task to a team.
#[utoipa::path(
    post, path = "/teams/{name}/tasks", tag = "teams", params(("name" = String, Path)), request_body = AddTeamTaskBody,
    responses((status = 201, body = AddedTask)),
)]
pub async fn add_task(
    State(app): State<AppState>,
    AccessLevel(access): AccessLevel,
    PathId(name): PathId,
    JsonBody(body): JsonBody<AddTeamTaskBody>,
) -> Result<(StatusCode, Json<AddedTask>)> {
    // Such a command runs in an agent's workspace without approval.
    if access < TokenAccess::Admin && matches!(body.verify, Some(TaskVerification::Command(_))) {
        return Err(Error::Forbidden(TokenAccess::Admin.as_str()));
    }
    let new = NewTeamTask {
        subject: body.subject,
        description: body.description,
        active_form: body.active_form,
        needs: body.depends_on,
        metadata: body.metadata,
        assignee: body.assignee,
        capability: body.capability,
        verify: body.verify,
    };
    let no = app.engine.create_task(&operator_actor(&app), &name, new).await?;
    Ok((StatusCode::CREATED, Json(AddedTask { task_id: no.0 })))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListTeamMessagesQuery {
    /// The number of messages. At most 1000, default 100.
    limit: Option<usize>,
}

/// Lists the messages of a team, newest first.
/// Sender, recipient and summary are shown; the content stays between those two.
#[utoipa::path(
    get, path = "/teams/{name}/messages", tag = "teams", params(("name" = String, Path), ListTeamMessagesQuery),
    responses((status = 200, body = TeamMessageList)),
)]
pub async fn list_team_messages(
    State(app): State<AppState>,
    PathId(name): PathId,
    QueryParams(newest): QueryParams<ListTeamMessagesQuery>,
) -> Result<Json<TeamMessageList>> {
    let found = app.engine.list_team_messages(&name, newest.limit.unwrap_or(100).min(1_000)).await?;
    Ok(Json(TeamMessageList { messages: found.into_iter().map(TeamMessageView::from).collect() }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendTeamMessageBody {
    /// A member's name or session key, or `lead`. If omitted, all members get the message.
    recipient: Option<String>,
    /// The text of the message.
    content: String,
    /// A one-line summary for other readers.
    summary: Option<String>,
}

/// Sends a message to a member, the lead or the whole team.
#[utoipa::path(
    post, path = "/teams/{name}/messages", tag = "teams", params(("name" = String, Path)), request_body = SendTeamMessageBody,
    responses((status = 202, body = SentTeamMessageView)),
)]
pub async fn send_team_message(
    State(app): State<AppState>,
    PathId(name): PathId,
    JsonBody(body): JsonBody<SendTeamMessageBody>,
) -> Result<(StatusCode, Json<SentTeamMessageView>)> {
    let kind = if body.recipient.is_some() { TeamMessageKind::Message } else { TeamMessageKind::Broadcast };
    let outgoing = OutgoingTeamMessage {
        kind,
        to: body.recipient,
        content: body.content,
        summary: body.summary,
        request_id: None,
        approve: None,
        reason: None,
    };
    let receipt = app.engine.send_team_message(&operator_actor(&app), &name, outgoing).await?;
    Ok((StatusCode::ACCEPTED, Json(receipt.into())))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReadTaskLogQuery {
    /// Only entries after this sequence number.
    after: Option<i64>,
    /// The number of entries. At most 1000, default 100.
    limit: Option<usize>,
}

/// Returns the history of the team's tasks, oldest first.
#[utoipa::path(
    get, path = "/teams/{name}/log", tag = "teams", params(("name" = String, Path), ReadTaskLogQuery),
    responses((status = 200, body = TaskLogView)),
)]
pub async fn read_task_log(
    State(app): State<AppState>,
    PathId(name): PathId,
    QueryParams(behind): QueryParams<ReadTaskLogQuery>,
) -> Result<Json<TaskLogView>> {
    let limit = behind.limit.unwrap_or(100).min(1_000);
    let found = app.engine.list_task_events(&name, behind.after.unwrap_or(0), limit).await?;
    Ok(Json(TaskLogView { log: found.into_iter().map(TaskLogEntryView::from).collect() }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetLeadBody {
    /// The session that takes over the lead.
    #[schema(value_type = String)]
    session_key: SessionKey,
}

/// Makes another session the lead of the team.
#[utoipa::path(
    put, path = "/teams/{name}/lead", tag = "teams", params(("name" = String, Path)), request_body = SetLeadBody,
    responses((status = 200, body = TeamView)),
)]
pub async fn set_lead(
    State(app): State<AppState>,
    PathId(name): PathId,
    JsonBody(body): JsonBody<SetLeadBody>,
) -> Result<Json<TeamView>> {
    Ok(Json(app.engine.set_team_lead(&name, &body.session_key).await?.into()))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShutdownTeamBody {
    /// Why the team ends. Its members get this reason.
    #[serde(default)]
    reason: String,
    /// Stop all members immediately without asking them.
    #[serde(default)]
    force: bool,
}

/// Shuts a team down.
#[utoipa::path(
    post, path = "/teams/{name}/shutdown", tag = "teams", params(("name" = String, Path)), request_body = ShutdownTeamBody,
    responses((status = 200, body = TeamShutdownView)),
)]
pub async fn shut_down_team(
    State(app): State<AppState>,
    PathId(name): PathId,
    JsonBody(body): JsonBody<ShutdownTeamBody>,
) -> Result<Json<TeamShutdownView>> {
    Ok(Json(app.engine.shut_down_team(&operator_actor(&app), &name, &body.reason, body.force).await?.into()))
}
