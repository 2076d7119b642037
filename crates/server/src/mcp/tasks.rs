//! Tools that work on the tasks of teams, as people and programs do: in the name of a member, or of the lead.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::api::{ApiMethod, ApiRefusal, InstanceApi, encode_segment};
use super::tools::result_text;

type TaskToolResult = Result<String, ApiRefusal>;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTasksArguments {
    /// The team, by its name.
    team: String,
    /// Only those that are `pending`, `claimed`, `in_progress`, `completed` or `failed`.
    status: Option<String>,
    /// Those that have ended, too.
    #[serde(default)]
    all: bool,
    /// How many at most, up to 200. 50 if left out.
    limit: Option<usize>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTaskArguments {
    /// The team, by its name.
    #[serde(skip_serializing)]
    team: String,
    /// What is to be done, in one line.
    subject: String,
    /// Everything whoever takes it needs to know.
    #[serde(default)]
    description: String,
    /// Tasks that must be completed before, by number.
    #[serde(default)]
    depends_on: Vec<i64>,
    /// The member who is to do it; whoever is free if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    assignee: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimTaskArguments {
    /// The team, by its name.
    team: String,
    /// The task, by number.
    task_id: i64,
    /// A member's name. The lead if left out.
    member: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteTaskArguments {
    /// The team, by its name.
    team: String,
    /// The task, by number.
    task_id: i64,
    /// A member's name. The lead if left out: it may end what others hold.
    member: Option<String>,
    /// What came of it, at most 1000 characters.
    summary: Option<String>,
    /// `completed` (if left out) or `failed`.
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
