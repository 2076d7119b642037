//! Tools to start other agents, delegate work to them and wait for them.

mod delegate;
mod remote;
mod send;
mod sessions;
mod spawn;

use polyclaw_domain::a2a;
use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::id::RunId;
use polyclaw_domain::run::{RunStatus, SubagentRun};
use polyclaw_domain::session::Session;
use polyclaw_domain::tool::{ToolCall, ToolEffect, ToolScope, ToolSpec, arguments};
use serde_json::{Value, json};

use super::ToolCallResult;
use super::engine_tool::{EngineTool, ToolInvocation};
use crate::core::Engine;
use crate::settings::EngineSettings;

/// Ends the calling turn. Results arrive later as announces.
pub(crate) const YIELD_TOOL: &str = "sessions_yield";

const WAIT_TOOL: &str = "agents_wait";
const DELEGATE_TOOL: &str = "delegate_to_agent";

/// Whether the turn's audience sees the delegate's text while it streams.
pub(crate) fn is_streamed(call: &ToolCall) -> bool {
    call.name == DELEGATE_TOOL && call.arguments["stream"] == true
}

/// Whether the call waits for others and continues waiting when repeated.
pub(crate) fn is_waiting_call(settings: &EngineSettings, call: &ToolCall) -> bool {
    let delegates = call.name == DELEGATE_TOOL && call.arguments["mode"] != "async";
    call.name == WAIT_TOOL || delegates && !is_not_repeatable(settings, call)
}

/// Returns the effect of a call, which depends on the tool and on the agent it delegates to.
pub(crate) fn call_effect(settings: &EngineSettings, call: &ToolCall, of_tool: ToolEffect) -> ToolEffect {
    if is_not_repeatable(settings, call) { ToolEffect::Effect } else { of_tool }
}

/// Whether the call must not be repeated. A remote agent that does not recognize repeated messages would do the work
/// twice.
fn is_not_repeatable(settings: &EngineSettings, call: &ToolCall) -> bool {
    let agent = call.arguments["agent_id"].as_str().filter(|_| call.name == DELEGATE_TOOL);
    let knows =
        |name: &str| settings.remotes.as_ref().is_some_and(|remotes| remotes.dedupes_by_message_id(name));
    agent.and_then(a2a::remote_agent_name).is_some_and(|name| !knows(name))
}

/// Returns the error for a tool that the session can never use, if there is a more specific one.
pub(crate) fn unusable_tool_reply(
    spec: &AgentSpec,
    session: &Session,
    call: &ToolCall,
    scope: &ToolScope,
) -> Option<String> {
    (call.name == DELEGATE_TOOL && !scope.delegates)
        .then(|| delegate::missing_grant_reply(spec, session, call))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubagentTool {
    Spawn,
    Yield,
    Wait,
    List,
    History,
    Send,
    Delegate,
}

impl EngineTool for SubagentTool {
    const ALL: &'static [Self] =
        &[Self::Spawn, Self::Yield, Self::Wait, Self::List, Self::History, Self::Send, Self::Delegate];

    fn spec(self) -> ToolSpec {
        match self {
            // The same call has the same run id, so a repeat after a crash starts nothing twice.
            Self::Spawn => ToolSpec {
                effect: ToolEffect::Idempotent,
                ..arguments::build_tool_spec::<spawn::SessionsSpawnArguments>(
                    "sessions_spawn",
                    "Starts a sub-agent on a task, in its own session, and returns immediately. You receive its \
                     result later as a message; use sessions_yield or agents_wait to wait for it.",
                )
            },
            Self::Yield => arguments::build_tool_spec::<spawn::SessionsYieldArguments>(
                YIELD_TOOL,
                "Ends your turn until your sub-agents or delegates complete. You receive a message with the \
                 results. Write no text before this call.",
            ),
            Self::Wait => arguments::build_tool_spec::<spawn::AgentsWaitArguments>(
                WAIT_TOOL,
                "Waits for runs that you started and returns their results.",
            ),
            Self::List => arguments::build_tool_spec::<sessions::SessionsListArguments>(
                "sessions_list",
                "Lists the sessions that you started and their descendants, with the status of their runs, and \
                 other sessions you may write to.",
            ),
            Self::History => arguments::build_tool_spec::<sessions::SessionsHistoryArguments>(
                "sessions_history",
                "Returns the last messages of a session that you started.",
            ),
            // The same call has the same message id.
            Self::Send => ToolSpec {
                effect: ToolEffect::Idempotent,
                ..arguments::build_tool_spec::<send::SessionsSendArguments>(
                    "sessions_send",
                    "Sends a message to another session: one that you started, or one of an agent you may write to. \
                     With wait_seconds, it waits for the answer.",
                )
            },
            Self::Delegate => ToolSpec {
                effect: ToolEffect::Idempotent,
                ..arguments::build_tool_spec::<delegate::DelegateToAgentArguments>(
                    DELEGATE_TOOL,
                    "Delegates a task to another agent, which uses its own model and tools. sync waits for the \
                     answer; async delivers it later as a message.",
                )
            },
        }
    }

    fn is_offered(self, _: &EngineSettings, scope: &ToolScope) -> bool {
        match self {
            Self::Delegate => scope.delegates,
            Self::Wait | Self::Yield => scope.spawns || scope.delegates,
            Self::Spawn | Self::List | Self::History | Self::Send => true,
        }
    }

    async fn perform(self, engine: &Engine, asked: ToolInvocation<'_>) -> ToolCallResult {
        let given = &asked.call.arguments;
        match self {
            Self::Spawn => spawn::spawn_session(engine, asked, arguments::parse_arguments(given)?).await,
            Self::Yield => {
                let spawn::SessionsYieldArguments {} = arguments::parse_arguments(given)?;
                spawn::yield_turn(engine, asked).await
            }
            Self::Wait => spawn::wait_for_agents(engine, asked, arguments::parse_arguments(given)?).await,
            Self::List => {
                let sessions::SessionsListArguments {} = arguments::parse_arguments(given)?;
                sessions::list(engine, asked).await
            }
            Self::History => sessions::read_history(engine, asked, arguments::parse_arguments(given)?).await,
            Self::Send => send::send_to_session(engine, asked, arguments::parse_arguments(given)?).await,
            Self::Delegate => {
                delegate::delegate_to_agent(engine, asked, arguments::parse_arguments(given)?).await
            }
        }
    }
}

impl ToolInvocation<'_> {
    /// Returns the id of the run that this call starts.
    fn run_id(&self) -> RunId {
        RunId::for_call(self.turn, &self.call.id)
    }
}

/// Renders a run for its owner.
fn run_json(run: &SubagentRun) -> Value {
    let result = run.result.as_ref();
    let answer = result.map(|result| result.text.as_str());
    json!({
        "run_id": run.id,
        "agent_id": run.agent,
        "label": run.task.label,
        "session_key": run.child,
        "status": run.status,
        "result": answer,
        "error_code": result.and_then(|result| result.error_code.as_deref()),
        "artifacts": result.map(|result| &result.artifacts),
        "fits_schema": result_fits_schema(run, answer),
    })
}

/// Whether the answer is JSON that matches the requested schema. Null if none was requested.
fn result_fits_schema(run: &SubagentRun, answer: Option<&str>) -> Option<bool> {
    let schema = run.task.schema.as_ref().filter(|_| run.status == RunStatus::Ok)?;
    let value: Value = serde_json::from_str(answer?.trim()).unwrap_or(Value::Null);
    Some(polyclaw_domain::json_schema::matches_schema(&value, schema))
}
