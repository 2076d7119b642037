//! `sessions_spawn`, `sessions_yield` and `agents_wait`.

use std::time::Duration;

use polyclaw_domain::id::{AgentId, RunId};
use polyclaw_domain::json_schema;
use polyclaw_domain::provider::{ModelRef, ReasoningEffort};
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::run::{RunKind, RunTask, SubagentRun};
use polyclaw_store::{Tx, jobs, runs};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ToolCallResult, ToolInvocation, run_json};
use crate::core::Engine;
use crate::error::Error;
use crate::subagents::{RunRequester, SpawnRequest, WaitMode};
use crate::toolbox::ToolRefusal;

const MAX_WAIT_SECONDS: u32 = 600;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionsSpawnArguments {
    /// The task, with everything the sub-agent needs to know. It does not see this conversation.
    task: String,
    /// The agent to run. Defaults to yourself.
    agent_id: Option<String>,
    /// A few words for people.
    label: Option<String>,
    /// provider/model, to override the agent's own.
    model: Option<String>,
    /// Reasoning effort: "low", "medium" or "high", to override the agent's own.
    thinking: Option<ReasoningEffort>,
    /// Time limit in seconds.
    timeout_seconds: Option<u32>,
    /// "keep" or "delete" its session after it ends.
    cleanup: Option<ChildSessionCleanup>,
    tags: Option<Vec<String>>,
    /// JSON Schema for the answer.
    result_schema: Option<Value>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum ChildSessionCleanup {
    Keep,
    Delete,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionsYieldArguments {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentsWaitArguments {
    /// Run ids returned by sessions_spawn and delegate_to_agent.
    run_ids: Vec<String>,
    /// Wait for "all" runs, or for "any" one.
    #[serde(default)]
    mode: WaitMode,
    /// Seconds to wait. Defaults to 60, at most 600.
    timeout: Option<u32>,
}

pub(super) async fn spawn_session(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    given: SessionsSpawnArguments,
) -> ToolCallResult {
    if given.task.trim().is_empty() {
        return Err(ToolRefusal("task must not be empty.".to_owned()));
    }
    if let Some(fault) = given.result_schema.as_ref().and_then(json_schema::find_schema_error) {
        return Err(ToolRefusal(format!("result_schema is not a valid JSON Schema: {fault}.")));
    }
    let own = engine.load_agent(&asked.scope.agent).await?.spec;
    let agent = match &given.agent_id {
        Some(id) => AgentId::parse(id).map_err(|error| ToolRefusal(error.to_string()))?,
        None => own.agent_id.clone(),
    };
    let model = given.model.as_deref().map(ModelRef::parse).transpose();
    let model = model.map_err(|error| ToolRefusal(error.to_string()))?;
    engine.check_model(model.as_ref()).await?;
    let model = model.or_else(|| own.subagents.model.clone());
    let seconds = given.timeout_seconds.unwrap_or(own.subagents.run_timeout_seconds);
    let schema = given.result_schema.clone();
    let mut prompt = given.task;
    if let Some(schema) = &schema {
        prompt.push_str(&format!("\n\nAnswer only with JSON that matches this schema:\n{schema}"));
    }
    let label = given.label.unwrap_or_else(|| polyclaw_domain::sanitize::to_single_line(&prompt, 60));
    let run = engine
        .spawn_subagent(SpawnRequest {
            id: asked.run_id(),
            kind: RunKind::Subagent,
            owner: asked.scope.session.clone(),
            requester: RunRequester::Turn(asked.turn.clone()),
            agent,
            task: RunTask {
                label,
                prompt,
                tags: given.tags.unwrap_or_default(),
                schema,
                ..RunTask::default()
            },
            model,
            thinking: given.thinking.or(own.subagents.thinking),
            timeout_ms: i64::from(seconds.clamp(1, 86_400)) * 1000,
            is_deleted_after: given.cleanup == Some(ChildSessionCleanup::Delete),
            is_awaited: false,
            is_streamed: false,
        })
        .await?;
    Ok(json!({ "status": "accepted", "child_session_key": run.child, "run_id": run.id }).to_string())
}

/// Answers `sessions_yield`; the engine ends the turn after it. Announces of runs that have already ended are queued
/// and are delivered by the next turn.
pub(super) async fn yield_turn(engine: &Engine, asked: ToolInvocation<'_>) -> ToolCallResult {
    let owner = asked.scope.session.clone();
    let read = move |tx: &mut Tx<'_>| {
        let is_due = match jobs::find_queued(tx, &owner)? {
            Some(queued) => !jobs::is_held_for_person(tx, &queued.turn)?,
            None => false,
        };
        Ok((runs::list_running_by_owner(tx, &owner)?.len(), is_due))
    };
    match engine.db().read(read).await.map_err(Error::from)? {
        (0, false) => Err(ToolRefusal("You have no active runs: there is nothing to wait for.".to_owned())),
        (0, true) => {
            Ok("Your turn ends here. The results that are already available are delivered immediately."
                .to_owned())
        }
        (count, _) => Ok(format!(
            "Your turn ends here. Active runs: {count}. You will receive a message when they \
                                  complete."
        )),
    }
}

pub(super) async fn wait_for_agents(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    given: AgentsWaitArguments,
) -> ToolCallResult {
    let ids: Vec<RunId> = given.run_ids.into_iter().map(RunId::new).collect();
    if ids.is_empty() {
        return Err(ToolRefusal("run_ids must not be empty: name the runs to wait for.".to_owned()));
    }
    for id in &ids {
        find_owned_run(engine, asked, id).await?;
    }
    let limit = Duration::from_secs(given.timeout.unwrap_or(60).clamp(1, MAX_WAIT_SECONDS).into());
    let who = (&asked.scope.session, asked.turn);
    let found = engine.wait_for_runs(who, &ids, given.mode, limit).await?;
    Ok(json!({ "runs": found.iter().map(run_json).collect::<Vec<_>>() }).to_string())
}

/// Finds a run of this session. Runs of other sessions are reported as unknown.
async fn find_owned_run(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    id: &RunId,
) -> Result<SubagentRun, ToolRefusal> {
    let run = engine.find_run(id).await?;
    match run.owner == asked.scope.session {
        true => Ok(run),
        false => Err(Error::UnknownRun(quote_safely(id.as_str())).into()),
    }
}
