//! Teams: who is in them, what they have to do, what they wrote. People act here as the operator.

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

/// The two parts of a list of tasks, in a cursor.
const OPEN_TASKS_LIST: &str = "open";
const ENDED_TASKS_LIST: &str = "ended";

fn operator_actor(app: &AppState) -> TeamActor {
    TeamActor::Operator { call: app.engine.next_id() }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListTeamsQuery {
    /// Those that have ended, too.
    #[serde(default)]
    all: bool,
}

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
    /// Lower-case letters, digits, `_` and `-`; at most 50.
    name: String,
    #[serde(default)]
    description: String,
    agent_type: Option<String>,
    /// The session that leads it. The main one of `agent_id`, or of the default agent, if left out.
    #[schema(value_type = Option<String>)]
    lead_session_key: Option<SessionKey>,
    #[schema(value_type = Option<String>)]
    agent_id: Option<AgentId>,
    /// It is led by a session of its own, `agent:<agent_id>:team:<name>`.
    #[serde(default)]
    own_session: bool,
}

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
    name: String,
    #[schema(value_type = Option<String>)]
    agent_id: Option<AgentId>,
    /// provider/model, if not its agent's own.
    model: Option<String>,
    /// Its first message. Without one it waits for mail.
    task: Option<String>,
    role: Option<String>,
    #[serde(default)]
    capabilities: Vec<String>,
    /// Gives the name of a member that is there to a new session.
    #[serde(default)]
    replace: bool,
    /// It can only read until the lead, or a person, approves the plan it sends.
    #[serde(default)]
    plan_mode_required: bool,
}

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
    /// `pending`, `claimed`, `in_progress`, `completed` or `failed`.
    #[param(value_type = Option<String>)]
    status: Option<TeamTaskState>,
    owner: Option<String>,
    /// Those that have ended, too.
    #[serde(default)]
    all: bool,
    /// At most 1000; 100 if not given.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Those that have not ended, then those that have; of each the newest first.
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
    /// At most 200 characters.
    subject: String,
    /// At most 10000 characters.
    #[serde(default)]
    description: String,
    active_form: Option<String>,
    /// Numbers of tasks that must be completed first.
    #[serde(default)]
    #[schema(value_type = Vec<i64>)]
    depends_on: Vec<TaskNo>,
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
    assignee: Option<String>,
    capability: Option<String>,
    /// `{"command": "…"}` or `{"agent": {"agent_id", "instructions"}}`.
    #[schema(value_type = Option<Object>)]
    verify: Option<TaskVerification>,
}

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
    // A command that nobody is asked about, in the workspace of an agent.
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
    /// At most 1000; 100 if not given.
    limit: Option<usize>,
}

/// The newest first: who wrote to whom, and the summary. The words themselves are between those two.
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
    /// A member's name or session key, or `lead`. Everybody if left out.
    recipient: Option<String>,
    content: String,
    summary: Option<String>,
}

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
    /// Entries behind this number.
    after: Option<i64>,
    /// At most 1000; 100 if not given.
    limit: Option<usize>,
}

/// Everything that became of the team's tasks, in order.
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
    #[schema(value_type = String)]
    session_key: SessionKey,
}

/// Gives the team to another session.
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
    #[serde(default)]
    reason: String,
    /// Stops all at once; nobody is asked.
    #[serde(default)]
    force: bool,
}

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
