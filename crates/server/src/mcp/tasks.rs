//! Tools for the tasks of teams. They act for a member, or for the lead.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::api::{ApiMethod, ApiRefusal, InstanceApi, encode_segment};
use super::tools::result_text;

type TaskToolResult = Result<String, ApiRefusal>;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTasksArguments {
    /// The name of the team.
    team: String,
    /// Only tasks in this state: `pending`, `claimed`, `in_progress`, `completed` or `failed`.
    status: Option<String>,
    /// Include tasks that have ended.
    #[serde(default)]
    all: bool,
    /// The number of tasks. Default 50, at most 200.
    limit: Option<usize>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTaskArguments {
    /// The name of the team.
    #[serde(skip_serializing)]
    team: String,
    /// What is to be done, in one line.
    subject: String,
    /// Everything the member needs to know.
    #[serde(default)]
    description: String,
    /// The numbers of tasks that must be completed first.
    #[serde(default)]
    depends_on: Vec<i64>,
    /// The only member that may claim the task. Defaults to any member.
    #[serde(skip_serializing_if = "Option::is_none")]
    assignee: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimTaskArguments {
    /// The name of the team.
    team: String,
    /// The number of the task.
    task_id: i64,
    /// The member to act for. Defaults to the lead.
    member: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteTaskArguments {
    /// The name of the team.
    team: String,
    /// The number of the task.
    task_id: i64,
    /// The member to act for. Defaults to the lead, which may end tasks of others.
    member: Option<String>,
    /// The result, at most 1000 characters.
    summary: Option<String>,
    /// `completed` (default) or `failed`.
    status: Option<String>,
}

pub async fn list_teams<A: InstanceApi>(api: &A) -> TaskToolResult {
    let answer = api.call_instance(ApiMethod::Get, "/teams", None).await?;
    Ok(result_text(&answer["teams"]))
}

pub async fn list_tasks<A: InstanceApi>(api: &A, given: ListTasksArguments) -> TaskToolResult {
    let limit = given.limit.unwrap_or(50).clamp(1, 200);
    let status =
        given.status.map(|status| format!("&status={}", encode_segment(&status))).unwrap_or_default();
    let path =
        format!("/teams/{}/tasks?limit={limit}&all={}{status}", encode_segment(&given.team), given.all);
    let answer = api.call_instance(ApiMethod::Get, &path, None).await?;
    Ok(result_text(&answer["tasks"]))
}

pub async fn create_task<A: InstanceApi>(api: &A, given: CreateTaskArguments) -> TaskToolResult {
    let body = serde_json::to_value(&given).unwrap_or_default();
    let answer = api
        .call_instance(ApiMethod::Post, &format!("/teams/{}/tasks", encode_segment(&given.team)), Some(&body))
        .await?;
    Ok(result_text(&answer))
}

pub async fn claim_task<A: InstanceApi>(api: &A, given: ClaimTaskArguments) -> TaskToolResult {
    post_task_action(api, (&given.team, given.task_id, "claim"), json!({ "member": given.member })).await
}

pub async fn complete_task<A: InstanceApi>(api: &A, given: CompleteTaskArguments) -> TaskToolResult {
    let status = given.status.as_deref().unwrap_or("completed");
    let body = json!({ "member": given.member, "summary": given.summary, "status": status });
    post_task_action(api, (&given.team, given.task_id, "complete"), body).await
}

async fn post_task_action<A: InstanceApi>(
    api: &A,
    (team, task, verb): (&str, i64, &str),
    body: Value,
) -> TaskToolResult {
    let path = format!("/teams/{}/tasks/{task}/{verb}", encode_segment(team));
    Ok(result_text(&api.call_instance(ApiMethod::Post, &path, Some(&body)).await?))
}
