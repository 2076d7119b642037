//! Tools that work on the tasks of teams, as people and programs do: in the name of a member, or of the lead.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::api::{Api, Refusal, Verb, segment};
use super::tools::shown;

type Done = Result<String, Refusal>;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTasks {
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
pub struct CreateTask {
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
pub struct ClaimTask {
    /// The team, by its name.
    team: String,
    /// The task, by number.
    task_id: i64,
    /// A member's name. The lead if left out.
    member: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteTask {
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

pub async fn teams<A: Api>(api: &A) -> Done {
    let answer = api.call(Verb::Get, "/teams", None).await?;
    Ok(shown(&answer["teams"]))
}

pub async fn list<A: Api>(api: &A, given: ListTasks) -> Done {
    let limit = given.limit.unwrap_or(50).clamp(1, 200);
    let status = given.status.map(|status| format!("&status={}", segment(&status))).unwrap_or_default();
    let path = format!("/teams/{}/tasks?limit={limit}&all={}{status}", segment(&given.team), given.all);
    let answer = api.call(Verb::Get, &path, None).await?;
    Ok(shown(&answer["tasks"]))
}

pub async fn create<A: Api>(api: &A, given: CreateTask) -> Done {
    let body = serde_json::to_value(&given).unwrap_or_default();
    let answer = api.call(Verb::Post, &format!("/teams/{}/tasks", segment(&given.team)), Some(&body)).await?;
    Ok(shown(&answer))
}

pub async fn claim<A: Api>(api: &A, given: ClaimTask) -> Done {
    act(api, (&given.team, given.task_id, "claim"), json!({ "member": given.member })).await
}

pub async fn complete<A: Api>(api: &A, given: CompleteTask) -> Done {
    let status = given.status.as_deref().unwrap_or("completed");
    let body = json!({ "member": given.member, "summary": given.summary, "status": status });
    act(api, (&given.team, given.task_id, "complete"), body).await
}

async fn act<A: Api>(api: &A, (team, task, verb): (&str, i64, &str), body: Value) -> Done {
    let path = format!("/teams/{}/tasks/{task}/{verb}", segment(team));
    Ok(shown(&api.call(Verb::Post, &path, Some(&body)).await?))
}
