//! Teams: members, tasks and messages. Callers act as the operator.

pub mod plan;
pub mod tasks;
mod view;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polyclaw_api::teams::{
    AddTeamTaskBody, AddedTask, CreateTeamBody, JoinTeamBody, JoinedMemberView, ListTeamMessagesQuery,
    ListTeamTasksQuery, ListTeamsQuery, ReadTaskLogQuery, SendTeamMessageBody, SentTeamMessageView,
    SetLeadBody, ShutdownTeamBody, TaskLogView, TeamDetail, TeamList, TeamMessageList, TeamMessageView,
    TeamShutdownView, TeamTaskList, TeamTaskView, TeamView,
};
use polyclaw_domain::instance::TokenAccess;
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::task::{TaskNo, TaskVerification, TeamTask};
use polyclaw_domain::team::{TeamRefusal, check_team_name};
use polyclaw_domain::team_message::TeamMessageKind;
use polyclaw_engine::Error as EngineError;
use polyclaw_engine::team::{NewMember, NewTeam, NewTeamTask, OutgoingTeamMessage, TaskFilter, TeamActor};

use crate::access::AccessLevel;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathId, QueryParams};
use crate::paging::{self, PagePosition, PageRequest};
use crate::state::AppState;
use view::{
    joined_member_view, sent_team_message_view, task_log_entry_view, team_detail, team_shutdown_view,
};

/// The two parts of the task list, as named in cursors.
const OPEN_TASKS_LIST: &str = "open";
const ENDED_TASKS_LIST: &str = "ended";

fn operator_actor(app: &AppState) -> TeamActor {
    TeamActor::Operator { call: app.engine.next_id() }
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
    Ok(Json(team_detail(app.engine.team_snapshot(&operator_actor(&app), &name).await?)))
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
    Ok((StatusCode::CREATED, Json(joined_member_view(spawned))))
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
    Ok((StatusCode::ACCEPTED, Json(sent_team_message_view(receipt))))
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
    Ok(Json(TaskLogView { log: found.into_iter().map(task_log_entry_view).collect() }))
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
    let ended = app.engine.shut_down_team(&operator_actor(&app), &name, &body.reason, body.force).await?;
    Ok(Json(team_shutdown_view(ended)))
}
