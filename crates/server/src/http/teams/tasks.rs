//! Team tasks, claimed and ended over the API. Callers act for a member, or for the lead if they name none, under the
//! same rules as that member's session.

use axum::Json;
use axum::extract::State;
use polyclaw_api::teams::TeamTaskView;
use polyclaw_api::teams::tasks::{
    ActingMember, AssignTask, CompleteTask, ReleaseTask, TaskArtifact, TaskEnd, TaskEnded,
};
use polyclaw_domain::run::Artifact;
use polyclaw_domain::task::{TaskNo, TeamTaskState};
use polyclaw_engine::team::{TaskChange, TaskOutcome, TeamActor, TeamTaskUpdate};

use crate::error::Result;
use crate::extract::{JsonBody, PathIds};
use crate::state::AppState;

/// The name of the team and the number of the task.
type TeamTaskPath = (String, i64);

fn acting_member(app: &AppState, member: Option<String>) -> TeamActor {
    TeamActor::on_behalf_of(member, app.engine.next_id())
}

/// Claims a task for a member.
/// The claim lasts for one lease, and longer while the member's session is working. The member is not woken.
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

/// Marks a task as in progress.
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

/// Releases a task.
/// It becomes pending again, and members that could claim it are notified.
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

/// Completes or fails a task.
/// The task's check must pass first. A check by an agent can only be run from a session, not over the API.
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

/// Assigns a task to a member, or to anyone.
/// A claimed task is released first.
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

/// Reopens an ended task.
/// It becomes pending again, and tasks that depend on it are blocked again.
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

/// Deletes a task that nobody has claimed.
/// Tasks that depend on it no longer wait for it.
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
