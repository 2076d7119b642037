//! `delegate_to_agent`: work for another agent, waited for or not.

use std::time::Duration;

use polyclaw_domain::id::AgentId;
use polyclaw_domain::plain;
use polyclaw_domain::run::{Run, RunKind, RunStatus, Task};
use polyclaw_domain::sandbox::WorkerFault;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Asked, Done};
use crate::core::Engine;
use crate::error::Error;
use crate::family::{AskedBy, Mode, Wish};
use crate::toolbox::Refused;

const DEFAULT_MS: u64 = 60_000;
/// A delegate that nobody waits for may take this long.
const LATER_MS: i64 = 15 * 60_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Delegate {
    /// The agent that gets the task, by its id.
    agent_id: String,
    /// What it is to do, with everything it needs to know.
    task: String,
    /// "sync" waits for the answer; "async" tells you later.
    #[serde(default)]
    mode: When,
    /// How long a sync task may take, from 1000 to 300000; 60000 if left out.
    timeout_ms: Option<u64>,
    /// The people you answer see what the agent says as it comes, under its name. Only with sync.
    #[serde(default)]
    stream: bool,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum When {
    #[default]
    Sync,
    Async,
}

pub(super) async fn delegate(engine: &Engine, asked: Asked<'_>, given: Delegate) -> Done {
    let began = engine.now();
    let agent = AgentId::parse(&given.agent_id).map_err(|error| Refused(error.to_string()))?;
    let waits = given.mode == When::Sync;
    if given.stream && !waits {
        return Err(Refused("stream needs mode \"sync\": nobody waits for what is told later.".to_owned()));
    }
    let patience = given.timeout_ms.unwrap_or(DEFAULT_MS).clamp(1_000, 300_000);
    let wish = Wish {
        id: asked.run_id(),
        kind: RunKind::Delegate,
        owner: asked.scope.session.clone(),
        asked: AskedBy::Turn(asked.turn.clone()),
        agent: agent.clone(),
        task: Task { label: plain::line(&given.task, 60), prompt: given.task, ..Task::default() },
        model: None,
        timeout_ms: if waits { i64::try_from(patience).unwrap_or(LATER_MS) } else { LATER_MS },
        is_deleted_after: false,
        is_awaited: waits,
        is_streamed: given.stream,
    };
    let run = match engine.begin_run(wish).await {
        Ok(run) => run,
        Err(error) => {
            // Names that are nobody's would be counted without end.
            if !matches!(error, Error::UnknownAgent(_)) {
                engine.pairs.reject(&asked.scope.agent, &agent);
            }
            return Ok(rejected(&error, &agent));
        }
    };
    if !waits {
        let told =
            json!({ "status": "accepted", "run_id": run.id, "session_key": run.child, "agent_id": agent });
        return Ok(told.to_string());
    }
    let who = (&asked.scope.session, asked.turn);
    let ids = [run.id.clone()];
    let mut found = engine.wait_for_runs(who, &ids, Mode::All, Duration::from_millis(patience)).await?;
    let is_at_work = found.first().is_some_and(|run| run.status == RunStatus::Running);
    // An engine that ends takes nobody's time away: the turn is handed back, and waits on in another life.
    if is_at_work && !engine.is_draining() {
        // Its time is over: it is stopped at its next boundary, and says how far it came.
        engine.stop(&run.child).await?;
        found = engine.wait_for_runs(who, &ids, Mode::All, Duration::from_secs(5)).await?;
    }
    let run = found.pop().unwrap_or(run);
    Ok(answer(&run, engine.now().since(began)).to_string())
}

fn rejected(error: &Error, agent: &AgentId) -> String {
    let code = match error.code() {
        "unknown_agent" => "agent_not_found",
        known @ ("delegation_denied" | "delegation_depth_exceeded" | "max_concurrent_exceeded") => known,
        "spawn_denied" => "delegation_denied",
        _ => "internal",
    };
    json!({ "status": "rejected", "code": code, "message": error.to_string(), "agent_id": agent }).to_string()
}

fn answer(run: &Run, duration_ms: i64) -> Value {
    let result = run.result.clone().unwrap_or_default();
    let worker = [WorkerFault::PoolExhausted, WorkerFault::WorkerCrash]
        .map(WorkerFault::as_str)
        .into_iter()
        .find(|code| result.error_code.as_deref() == Some(code));
    let (status, code) = match run.status {
        RunStatus::Ok => ("completed", None),
        RunStatus::Timeout | RunStatus::Running => ("timeout", Some("timeout")),
        RunStatus::Error | RunStatus::Cancelled => ("error", Some(worker.unwrap_or("internal"))),
    };
    let text = Some(&result.text).filter(|text| !text.is_empty());
    let is_whole = run.status == RunStatus::Ok;
    json!({
        "status": status,
        "code": code,
        // Why a turn of it failed, in the words of turns.
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
