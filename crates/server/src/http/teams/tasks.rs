//! Team tasks, claimed and ended over the API. Callers act for a member, or for the lead if they name none, under the
//! same rules as that member's session.

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

/// The name of the team and the number of the task.
type TeamTaskPath = (String, i64);

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActingMember {
    /// The member to act for: a name, or `lead` (default).
    member: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseTask {
    /// The member to act for: a name, or `lead` (default), which may release tasks of others.
    member: Option<String>,
    /// A note for the next member that claims the task, at most 1000 characters.
    note: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteTask {
    /// The member to act for: a name, or `lead` (default), which may end tasks of others.
    member: Option<String>,
    /// The result, at most 1000 characters.
    summary: Option<String>,
    /// `completed` (default) or `failed`.
    #[serde(default)]
    status: TaskEnd,
    /// The results that the task produced.
    #[serde(default)]
    artifacts: Vec<TaskArtifact>,
}

#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    /// The task was done.
    #[default]
    Completed,
    /// The task could not be done.
    Failed,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskArtifact {
    /// The kind of artifact, such as `file` or `commit`.
    kind: String,
    /// The path of a file, or the hash of a commit.
    path: String,
}

#[derive(Serialize, ToSchema)]
pub struct TaskEnded {
    /// The number of the ended task.
    task_id: i64,
    /// The tasks that can be claimed now because this one is completed.
    unblocked: Vec<i64>,
}

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

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AssignTask {
    /// The only member that may claim the task from now on. Empty lets any member claim it.
    assignee: String,
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
