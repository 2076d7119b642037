//! `delegate_to_agent`: delegates work to another agent, synchronously or asynchronously.

use std::ops::RangeInclusive;
use std::time::Duration;

use polyclaw_domain::a2a;
use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::run::{RunKind, RunStatus, RunTask, SpawnLimitExceeded, SubagentRun};
use polyclaw_domain::sandbox::WorkerFault;
use polyclaw_domain::sanitize;
use polyclaw_domain::session::Session;
use polyclaw_domain::tool::ToolCall;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::remote::{self, RemoteTaskRequest};
use super::{ToolCallResult, ToolInvocation};
use crate::core::Engine;
use crate::error::Error;
use crate::subagents::{RunRequester, SpawnRequest, WaitMode};
use crate::toolbox::ToolRefusal;

const DEFAULT_TIMEOUT_MS: u64 = 60_000;
const TIMEOUT_RANGE_MS: RangeInclusive<u64> = 1_000..=300_000;
/// Default time limit of an asynchronous delegate.
const ASYNC_TIMEOUT_MS: u64 = 15 * 60_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DelegateToAgentArguments {
    /// Agent id; `a2a:<name>` for a remote agent, which is always waited for.
    agent_id: String,
    /// The task, with everything the agent needs to know.
    task: String,
    /// "sync" waits for the answer; "async" announces it later.
    #[serde(default)]
    mode: DelegationMode,
    /// Time limit, from 1000 to 300000. Defaults to 60000 with sync and fifteen minutes with async.
    timeout_ms: Option<u64>,
    /// Show the agent's answer to the people you answer while it streams, under its name. Only with sync.
    #[serde(default)]
    stream: bool,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum DelegationMode {
    #[default]
    Sync,
    Async,
}

pub(super) async fn delegate_to_agent(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    given: DelegateToAgentArguments,
) -> ToolCallResult {
    let began = engine.now();
    let waits = given.mode == DelegationMode::Sync;
    if given.stream && !waits {
        return Err(ToolRefusal(
            "stream requires mode \"sync\": an async answer cannot be streamed.".to_owned(),
        ));
    }
    if given.task.trim().is_empty() {
        return Err(ToolRefusal("task must not be empty.".to_owned()));
    }
    let timeout = given.timeout_ms.unwrap_or(if waits { DEFAULT_TIMEOUT_MS } else { ASYNC_TIMEOUT_MS });
    if given.timeout_ms.is_some_and(|given| !TIMEOUT_RANGE_MS.contains(&given)) {
        let (least, most) = (TIMEOUT_RANGE_MS.start(), TIMEOUT_RANGE_MS.end());
        return Err(ToolRefusal(format!("timeout_ms must be between {least} and {most}, not {timeout}.")));
    }
    if let Some(name) = a2a::remote_agent_name(&given.agent_id) {
        if !waits || given.stream {
            return Err(ToolRefusal("A remote agent requires mode \"sync\", without stream.".to_owned()));
        }
        let timeout = Duration::from_millis(timeout);
        let request = RemoteTaskRequest { agent: &given.agent_id, name, task: given.task, timeout };
        return remote::delegate_remote(engine, asked, request).await;
    }
    let agent = AgentId::parse(&given.agent_id).map_err(|error| ToolRefusal(error.to_string()))?;
    let spawn_request = SpawnRequest {
        id: asked.run_id(),
        kind: RunKind::Delegate,
        owner: asked.scope.session.clone(),
        requester: RunRequester::Turn(asked.turn.clone()),
        agent: agent.clone(),
        task: RunTask {
            label: sanitize::to_single_line(&given.task, 60),
            prompt: given.task,
            ..RunTask::default()
        },
        model: None,
        thinking: None,
        timeout_ms: i64::try_from(timeout).unwrap_or(i64::MAX),
        is_deleted_after: false,
        is_awaited: waits,
        is_streamed: given.stream,
    };
    let run = match engine.spawn_subagent(spawn_request).await {
        Ok(run) => run,
        Err(error) => {
            // Unknown agents are not counted, because a model could invent any number of names.
            if !matches!(error, Error::UnknownAgent(_)) {
                engine.delegation_stats.count_rejection(&asked.scope.agent, &agent);
            }
            let code = rejection_code(&error);
            return Ok(rejection_json(
                code,
                &error.to_string(),
                Some(agent.as_str()),
                engine.now().since(began),
            ));
        }
    };
    if !waits {
        let body = json!({ "status": "accepted", "run_id": run.id, "session_key": run.child, "agent_id": agent,
            "duration_ms": engine.now().since(began) });
        return Ok(body.to_string());
    }
    let who = (&asked.scope.session, asked.turn);
    let ids = [run.id.clone()];
    let mut found = engine.wait_for_runs(who, &ids, WaitMode::All, Duration::from_millis(timeout)).await?;
    let is_at_work = found.first().is_some_and(|run| run.status == RunStatus::Running);
    // While the engine drains the delegate is not stopped: the turn is released, and waits again after the restart.
    if is_at_work && !engine.is_draining() {
        // The time limit is reached: stop the delegate at its next boundary and return its partial answer.
        engine.stop_session(&run.child).await?;
        found = engine.wait_for_runs(who, &ids, WaitMode::All, Duration::from_secs(5)).await?;
    }
    let run = found.pop().unwrap_or(run);
    Ok(answer_json(&run, engine.now().since(began)).to_string())
}

fn rejection_code(error: &Error) -> &'static str {
    match error.code() {
        "unknown_agent" => "agent_not_found",
        known @ ("delegation_denied" | "delegation_depth_exceeded" | "max_concurrent_exceeded") => known,
        "spawn_denied" => "delegation_denied",
        _ => "internal",
    }
}

/// Builds the result of any rejection, including a call of a tool that is not offered.
fn rejection_json(code: &str, message: &str, agent: Option<&str>, duration_ms: i64) -> String {
    json!({ "status": "rejected", "code": code, "message": message, "session_key": Value::Null, "agent_id": agent,
        "duration_ms": duration_ms })
    .to_string()
}

/// Builds the result for a session that may not delegate: it has no grant, or the maximum depth is reached.
pub(super) fn missing_grant_reply(spec: &AgentSpec, session: &Session, call: &ToolCall) -> String {
    let agent = call.arguments["agent_id"].as_str();
    let error = match &spec.delegation {
        Some(rules) => {
            let depth = session.delegation_depth + 1;
            Error::TooMany(RunKind::Delegate, SpawnLimitExceeded::Depth(depth, rules.max_depth))
        }
        None => Error::DelegationDenied(spec.agent_id.to_string(), agent.unwrap_or("anybody").to_owned()),
    };
    rejection_json(rejection_code(&error), &error.to_string(), agent, 0)
}

/// Error codes of turns that failed because of the model or the connection to it.
const MODEL_FAILURE_CODES: [&str; 5] =
    ["provider_failed", "no_model", "empty_reply", "stalled", "too_many_open_files"];

fn answer_json(run: &SubagentRun, duration_ms: i64) -> Value {
    let result = run.result.clone().unwrap_or_default();
    let worker = [WorkerFault::PoolExhausted, WorkerFault::WorkerCrash]
        .map(WorkerFault::as_str)
        .into_iter()
        .find(|code| result.error_code.as_deref() == Some(code));
    let model = MODEL_FAILURE_CODES.into_iter().find(|code| result.error_code.as_deref() == Some(code));
    let (status, code) = match run.status {
        RunStatus::Ok => ("completed", None),
        RunStatus::Timeout | RunStatus::Running => ("timeout", Some("timeout")),
        RunStatus::Error | RunStatus::Cancelled => ("error", Some(worker.or(model).unwrap_or("internal"))),
    };
    let text = Some(&result.text).filter(|text| !text.is_empty());
    let is_whole = run.status == RunStatus::Ok;
    json!({
        "status": status,
        "code": code,
        // The turn's own error code.
        "cause": result.error_code.as_ref().filter(|_| status == "error"),
        "streamed": run.audience.is_some(),
        "response": text.filter(|_| is_whole),
        "partial_response": text.filter(|_| !is_whole),
        "run_id": run.id,
        "session_key": run.child,
        "agent_id": run.agent,
        "duration_ms": duration_ms,
    })
}
