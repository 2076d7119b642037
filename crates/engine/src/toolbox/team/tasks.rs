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
    /// Everything whoever takes it needs to know. At most 10000 characters.
    description: String,
    /// What it is called while somebody works on it: "Writing the tests".
    active_form: Option<String>,
    /// Numbers of tasks that must be completed first.
    #[serde(alias = "depends_on")]
    depends_on: Option<Vec<TaskNo>>,
    metadata: Option<Map<String, Value>>,
    /// The one member who may take it.
    assignee: Option<String>,
    /// What a member must be able to do to take it.
    capability: Option<String>,
    /// {"command": "…"} that must end with 0 where the work was done, or {"agent": {"agent_id": "…", "instructions": "…"}}.
    verify: Option<TaskVerification>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TaskListArguments {
    #[serde(rename = "team_name")]
    team: String,
    status: Option<TeamTaskState>,
    /// The name or session key of a member who has it, or had it when it ended.
    owner: Option<String>,
    #[serde(default, alias = "include_completed")]
    include_completed: bool,
    /// Only tasks with these values.
    metadata: Option<Value>,
    /// Only what you could claim now.
    #[serde(default)]
    available: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskClaimArguments {
    team_name: String,
    /// The oldest free one if left out.
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
    /// More tasks that must be completed first. For the lead.
    #[serde(rename = "dependsOn", alias = "depends_on")]
    depends_on: Option<Vec<TaskNo>>,
    /// Tasks it need not wait for any more. For the lead.
    #[serde(rename = "dropDependsOn", alias = "drop_depends_on")]
    drop_depends_on: Option<Vec<TaskNo>>,
    /// The one member who may take it from now on; "" for whoever comes. Release it first where another has it. For the lead.
    assignee: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TaskStep {
    InProgress,
    Released,
    /// Has ended and is to be done again. For the lead.
    Reopened,
    /// Goes from the list; what waited for it waits no longer. For the lead.
    Deleted,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskCompleteArguments {
    team_name: String,
    task_id: TaskNo,
    /// What came of it, at most 1000 characters.
    summary: Option<String>,
    #[serde(default)]
    status: TaskEndStatus,
    /// What it left behind: [{"kind": "file", "path": "…"}].
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

/// A task as those are shown it who work on it.
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
        // That somebody else was first is an answer, not a fault. Whoever never heard of what it claimed hears of it here.
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
