//! `TaskCreate`, `TaskList`, `TaskClaim`, `TaskUpdate` and `TaskComplete`.

use polyclaw_domain::run::Artifact;
use polyclaw_domain::task::{TaskNo, TaskVerification, TeamTask, TeamTaskState};
use polyclaw_store::tasks::TaskChange;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{ToolCallResult, ToolInvocation};
use crate::core::Engine;
use crate::error::Error;
use crate::team::{NewTeamTask, TaskFilter, TaskOutcome, TeamTaskUpdate as Changed};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TaskCreateArguments {
    #[serde(rename = "team_name")]
    team: String,
    /// At most 200 characters.
    subject: String,
    /// Everything the assignee needs to know. At most 10000 characters.
    description: String,
    /// Title while the task is in progress, such as "Writing the tests".
    active_form: Option<String>,
    /// Numbers of tasks that must be completed first.
    #[serde(alias = "depends_on")]
    depends_on: Option<Vec<TaskNo>>,
    metadata: Option<Map<String, Value>>,
    /// The only member who may claim it.
    assignee: Option<String>,
    /// Capability a member must have to claim it.
    capability: Option<String>,
    /// {"command": "…"} that must exit with 0 in the workspace, or {"agent": {"agent_id": "…", "instructions": "…"}}.
    verify: Option<TaskVerification>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TaskListArguments {
    #[serde(rename = "team_name")]
    team: String,
    status: Option<TeamTaskState>,
    /// Name or session key of the member who holds the task, or held it when it ended.
    owner: Option<String>,
    #[serde(default, alias = "include_completed")]
    include_completed: bool,
    /// List only tasks with these values.
    metadata: Option<Value>,
    /// List only tasks that you could claim now.
    #[serde(default)]
    available: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskClaimArguments {
    team_name: String,
    /// Defaults to the oldest free task.
    task_id: Option<TaskNo>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskUpdateArguments {
    team_name: String,
    task_id: TaskNo,
    status: Option<TaskStep>,
    #[serde(rename = "activeForm", alias = "active_form")]
    active_form: Option<String>,
    note: Option<String>,
    /// More tasks that must be completed first. Lead only.
    #[serde(rename = "dependsOn", alias = "depends_on")]
    depends_on: Option<Vec<TaskNo>>,
    /// Dependencies to remove. Lead only.
    #[serde(rename = "dropDependsOn", alias = "drop_depends_on")]
    drop_depends_on: Option<Vec<TaskNo>>,
    /// The only member who may claim it from now on; "" for anyone. Release it first if another member holds it. Lead
    /// only.
    assignee: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TaskStep {
    InProgress,
    Released,
    /// Make an ended task pending again. Lead only.
    Reopened,
    /// Remove the task; tasks that depended on it no longer wait for it. Lead only.
    Deleted,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskCompleteArguments {
    team_name: String,
    task_id: TaskNo,
    /// Result, at most 1000 characters.
    summary: Option<String>,
    #[serde(default)]
    status: TaskEndStatus,
    /// Created artifacts: [{"kind": "file", "path": "…"}].
    artifacts: Option<Vec<ArtifactArgument>>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TaskEndStatus {
    #[default]
    Completed,
    Failed,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ArtifactArgument {
    kind: String,
    path: String,
}

/// Renders a task for members of the team.
pub(super) fn task_json(task: &TeamTask) -> Value {
    json!({
        "task_id": task.no,
        "subject": task.subject,
        "description": task.description,
        "title": task.display_title(),
        "status": task.state,
        "owner": task.lease.as_ref().map(|lease| &lease.owner).or(task.ended_by.as_ref()),
        "lease_until": task.lease.as_ref().map(|lease| lease.until.to_string()),
        "fencing_token": task.lease.as_ref().map(|lease| lease.fencing_token),
        "assignee": task.assignee,
        "capability": task.capability,
        "dependsOn": task.needs,
        "blockedBy": task.blocked_by,
        "metadata": task.metadata,
        "verify": task.verify,
        "note": task.note,
        "summary": task.summary,
    })
}

pub(super) async fn create_task(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    given: TaskCreateArguments,
) -> ToolCallResult {
    let new = NewTeamTask {
        subject: given.subject,
        description: given.description,
        active_form: given.active_form,
        needs: given.depends_on.unwrap_or_default(),
        metadata: given.metadata.map(Value::Object),
        assignee: given.assignee,
        capability: given.capability,
        verify: given.verify,
    };
    let no = engine.create_task(&asked.team_actor(), &given.team, new).await?;
    Ok(json!({ "task_id": no }).to_string())
}

pub(super) async fn list(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    given: TaskListArguments,
) -> ToolCallResult {
    let wanted = TaskFilter {
        state: given.status,
        owner: given.owner,
        with_ended: given.include_completed,
        metadata: given.metadata,
        available: given.available,
        ..TaskFilter::default()
    };
    let found = engine.list_tasks(&asked.team_actor(), &given.team, wanted).await?;
    Ok(json!({ "tasks": found.iter().map(task_json).collect::<Vec<_>>() }).to_string())
}

pub(super) async fn claim_task(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    given: TaskClaimArguments,
) -> ToolCallResult {
    match engine.claim_task(&asked.team_actor(), &given.team_name, given.task_id).await {
        Ok(task) => Ok(json!({ "success": true, "task": task_json(&task) }).to_string()),
        // A claim that lost to another member is a result, not an error. It also lists the tasks the caller already
        // holds, in case an earlier result was lost.
        Err(Error::Task(why)) => {
            let holds = engine.list_held_tasks(&asked.team_actor(), &given.team_name).await?;
            Ok(json!({ "success": false, "code": why.code(), "reason": why.to_string(),
                "blockedBy": why.blocked_by(), "claimedByYou": holds })
            .to_string())
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn update_task(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    given: TaskUpdateArguments,
) -> ToolCallResult {
    let state = match given.status {
        Some(TaskStep::InProgress) => Some(TeamTaskState::InProgress),
        Some(TaskStep::Released) => Some(TeamTaskState::Pending),
        Some(TaskStep::Reopened) => {
            let task = engine.reopen_task(&asked.team_actor(), &given.team_name, given.task_id).await?;
            return Ok(task_json(&task).to_string());
        }
        Some(TaskStep::Deleted) => {
            engine.delete_task(&asked.team_actor(), &given.team_name, given.task_id).await?;
            return Ok(json!({ "task_id": given.task_id, "deleted": true }).to_string());
        }
        None => None,
    };
    let change = TaskChange {
        active_form: given.active_form,
        note: given.note,
        needs: given.depends_on.unwrap_or_default(),
        drops: given.drop_depends_on.unwrap_or_default(),
        assignee: given.assignee,
    };
    let task = engine
        .update_task(&asked.team_actor(), &given.team_name, given.task_id, Changed { state, change })
        .await?;
    Ok(task_json(&task).to_string())
}

pub(super) async fn complete_task(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    given: TaskCompleteArguments,
) -> ToolCallResult {
    let artifacts = given.artifacts.unwrap_or_default().into_iter();
    let finish = TaskOutcome {
        state: match given.status {
            TaskEndStatus::Completed => TeamTaskState::Completed,
            TaskEndStatus::Failed => TeamTaskState::Failed,
        },
        summary: given.summary,
        artifacts: artifacts.map(|ArtifactArgument { kind, path }| Artifact { kind, path }).collect(),
    };
    let unblocked = engine.finish_task(&asked.team_actor(), &given.team_name, given.task_id, finish).await?;
    Ok(json!({ "task_id": given.task_id, "unblocked": unblocked }).to_string())
}
