//! Sub-agent and delegation runs, and completed ones whose announce waits for a person.

use polyclaw_domain::id::{AgentId, RunId, TraceId};
use polyclaw_domain::run::{RunKind, RunStatus, SubagentRun};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListRunsQuery {
    /// Only runs started by this session, newest first.
    #[param(value_type = Option<String>)]
    pub owner: Option<SessionKey>,
    /// With `true`, runs of all sessions whose announce waits for a person, oldest first.
    pub held: Option<bool>,
    /// The number of runs. At most 1000, default 100.
    pub limit: Option<usize>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunView>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct RunView {
    /// The id of the run.
    #[schema(value_type = String)]
    pub run_id: RunId,
    /// `subagent` or `delegate`.
    #[schema(value_type = String)]
    pub kind: RunKind,
    /// The session of the run.
    #[schema(value_type = String)]
    pub session_key: SessionKey,
    /// The agent that does the work.
    #[schema(value_type = String)]
    pub agent_id: AgentId,
    /// The session that started the run.
    #[schema(value_type = String)]
    pub owner_session_key: SessionKey,
    /// The agent that started the run.
    #[schema(value_type = String)]
    pub caller_agent_id: AgentId,
    /// The trace of the run. A trace connects all turns caused by one message.
    #[schema(value_type = String)]
    pub trace_id: TraceId,
    /// A short name of the task.
    pub label: String,
    /// The task given to the agent.
    pub task: String,
    /// Tags given by the agent that started the run.
    pub tags: Vec<String>,
    /// `running`, `ok`, `error`, `timeout` or `cancelled`.
    #[schema(value_type = String)]
    pub status: RunStatus,
    /// Why the announce of the result waits for a person. Null if it does not.
    pub held: Option<String>,
    /// The result, once the run has ended.
    pub result: Option<String>,
    /// The code of the error, if the run failed.
    pub error_code: Option<String>,
    /// Tokens used. Null if a provider did not report them.
    pub tokens: Option<u64>,
    /// Cost in US dollars. Null if a price is unknown.
    pub cost_usd: Option<f64>,
    /// When the run was started.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
    /// When the run ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Millis>,
}

impl From<SubagentRun> for RunView {
    fn from(run: SubagentRun) -> Self {
        let result = run.result;
        Self {
            run_id: run.id,
            kind: run.kind,
            session_key: run.child,
            agent_id: run.agent,
            owner_session_key: run.owner,
            caller_agent_id: run.caller,
            trace_id: run.trace,
            label: run.task.label,
            task: run.task.prompt,
            tags: run.task.tags,
            status: run.status,
            held: run.held,
            error_code: result.as_ref().and_then(|result| result.error_code.clone()),
            tokens: result.as_ref().and_then(|result| result.tokens),
            cost_usd: result.as_ref().and_then(|result| result.cost_usd),
            result: result.map(|result| result.text),
            created_at: run.created_at,
            ended_at: run.ended_at,
        }
    }
}
