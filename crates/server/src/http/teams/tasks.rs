//! Tasks, taken up and ended by people and programs. They act in the name of a member, or of the lead if they name none;
//! what a name may do, and what the ledger refuses, is the same as for the session that bears it.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::run::Artifact;
use polyclaw_domain::task::{TaskNo, TeamTaskState};
use polyclaw_engine::team::{TaskChange, TaskOutcome, TeamActor, TeamTaskUpdate};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::view::TeamTaskView;
use crate::error::Result;
use crate::extract::{JsonBody, PathIds};
use crate::state::AppState;

/// The team's name and the task's number.
type TeamTaskPath = (String, i64);

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActingMember {
    /// A member's name, or `lead`. The lead if left out.
    member: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseTask {
    /// A member's name, or `lead`. The lead if left out: it may release what others hold.
    member: Option<String>,
    /// Why, for whoever takes it next; at most 1000 characters.
    note: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteTask {
    /// A member's name, or `lead`. The lead if left out: it may end what others hold.
    member: Option<String>,
    /// What came of it, at most 1000 characters.
    summary: Option<String>,
    #[serde(default)]
    status: TaskEnd,
    /// What it left behind.
    #[serde(default)]
    artifacts: Vec<TaskArtifact>,
}

#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    #[default]
    Completed,
    Failed,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskArtifact {
    kind: String,
    path: String,
}

#[derive(Serialize, ToSchema)]
pub struct TaskEnded {
    task_id: i64,
    /// Tasks that can be taken because of it.
    unblocked: Vec<i64>,
}

fn acting_member(app: &AppState, member: Option<String>) -> TeamActor {
    TeamActor::on_behalf_of(member, app.engine.next_id())
}

/// It is held for as long as a lease lasts, and longer while the session that bears the name is at work. Nobody is woken.
#[utoipa::path(
    post, path = "/teams/{name}/tasks/{id}/claim", tag = "teams", params(("name" = String, Path), ("id" = i64, Path)),
    request_body = ActingMember, responses((status = 200, body = TeamTaskView)),
)]
pub async fn claim_task(
    State(app): State<AppState>,
    PathIds((team, no)): PathIds<TeamTaskPath>,
    JsonBody(body): JsonBody<ActingMember>,
) -> Result<Json<TeamTaskView>> {
    let task = app.engine.claim_task(&acting_member(&app, body.member), &team, Some(TaskNo(no))).await?;
    Ok(Json(task.into()))
}

#[utoipa::path(
    post, path = "/teams/{name}/tasks/{id}/start", tag = "teams", params(("name" = String, Path), ("id" = i64, Path)),
    request_body = ActingMember, responses((status = 200, body = TeamTaskView)),
)]
pub async fn start_task(
    State(app): State<AppState>,
    PathIds((team, no)): PathIds<TeamTaskPath>,
    JsonBody(body): JsonBody<ActingMember>,
) -> Result<Json<TeamTaskView>> {
    let update = TeamTaskUpdate { state: Some(TeamTaskState::InProgress), change: TaskChange::default() };
    let task = app.engine.update_task(&acting_member(&app, body.member), &team, TaskNo(no), update).await?;
    Ok(Json(task.into()))
}

/// Gives it back: it is pending again, and whoever could take it is told.
#[utoipa::path(
    post, path = "/teams/{name}/tasks/{id}/release", tag = "teams", params(("name" = String, Path), ("id" = i64, Path)),
    request_body = ReleaseTask, responses((status = 200, body = TeamTaskView)),
)]
pub async fn release_task(
    State(app): State<AppState>,
    PathIds((team, no)): PathIds<TeamTaskPath>,
    JsonBody(body): JsonBody<ReleaseTask>,
) -> Result<Json<TeamTaskView>> {
    let change = TaskChange { note: body.note, ..TaskChange::default() };
    let update = TeamTaskUpdate { state: Some(TeamTaskState::Pending), change };
    let task = app.engine.update_task(&acting_member(&app, body.member), &team, TaskNo(no), update).await?;
    Ok(Json(task.into()))
}

/// Ends it. A check that it bears must pass first; one that asks an agent can only be passed by a session.
#[utoipa::path(
    post, path = "/teams/{name}/tasks/{id}/complete", tag = "teams", params(("name" = String, Path), ("id" = i64, Path)),
    request_body = CompleteTask, responses((status = 200, body = TaskEnded)),
)]
pub async fn complete_task(
    State(app): State<AppState>,
    PathIds((team, no)): PathIds<TeamTaskPath>,
    JsonBody(body): JsonBody<CompleteTask>,
) -> Result<Json<TaskEnded>> {
    let left = |TaskArtifact { kind, path }| Artifact { kind, path };
    let finish = TaskOutcome {
        state: match body.status {
            TaskEnd::Completed => TeamTaskState::Completed,
            TaskEnd::Failed => TeamTaskState::Failed,
        },
        summary: body.summary,
        artifacts: body.artifacts.into_iter().map(left).collect(),
    };
    let unblocked =
        app.engine.finish_task(&acting_member(&app, body.member), &team, TaskNo(no), finish).await?;
    Ok(Json(TaskEnded { task_id: no, unblocked: unblocked.into_iter().map(|no| no.0).collect() }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AssignTask {
    /// The one member who may take it from now on; empty for whoever comes.
    assignee: String,
}

/// Says who may take it. One that somebody holds is released first.
#[utoipa::path(
    post, path = "/teams/{name}/tasks/{id}/assign", tag = "teams", params(("name" = String, Path), ("id" = i64, Path)),
    request_body = AssignTask, responses((status = 200, body = TeamTaskView)),
)]
pub async fn assign_task(
    State(app): State<AppState>,
    PathIds((team, no)): PathIds<TeamTaskPath>,
    JsonBody(body): JsonBody<AssignTask>,
) -> Result<Json<TeamTaskView>> {
    let change = TaskChange { assignee: Some(body.assignee), ..TaskChange::default() };
    let update = TeamTaskUpdate { state: None, change };
    let task = app.engine.update_task(&acting_member(&app, None), &team, TaskNo(no), update).await?;
    Ok(Json(task.into()))
}

/// Makes a task that has ended pending again. What waits for it is blocked again.
#[utoipa::path(
    post, path = "/teams/{name}/tasks/{id}/reopen", tag = "teams", params(("name" = String, Path), ("id" = i64, Path)),
    responses((status = 200, body = TeamTaskView)),
)]
pub async fn reopen_task(
    State(app): State<AppState>,
    PathIds((team, no)): PathIds<TeamTaskPath>,
) -> Result<Json<TeamTaskView>> {
    Ok(Json(app.engine.reopen_task(&acting_member(&app, None), &team, TaskNo(no)).await?.into()))
}

/// Removes a task that nobody holds. What waited for it waits no longer.
#[utoipa::path(
    delete, path = "/teams/{name}/tasks/{id}", tag = "teams", params(("name" = String, Path), ("id" = i64, Path)),
    responses((status = 200, body = TeamTaskView)),
)]
pub async fn delete_task(
    State(app): State<AppState>,
    PathIds((team, no)): PathIds<TeamTaskPath>,
) -> Result<Json<TeamTaskView>> {
    Ok(Json(app.engine.delete_task(&acting_member(&app, None), &team, TaskNo(no)).await?.into()))
}
