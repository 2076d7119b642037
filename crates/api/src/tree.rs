//! A session with all sessions started from it.

use polyclaw_domain::id::{AgentId, RunId, TraceId};
use polyclaw_domain::job::JobLane;
use polyclaw_domain::run::RunStatus;
use polyclaw_domain::session::SessionActivity;
use polyclaw_domain::session_key::SessionKey;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct SessionNodeView {
    /// The session.
    #[schema(value_type = String)]
    pub session_key: SessionKey,
    /// The agent that answers in it.
    #[schema(value_type = String)]
    pub agent_id: AgentId,
    /// The label given by the session that started it, else the title.
    pub label: Option<String>,
    /// How many sub-agent spawns lie between this session and a person.
    pub depth: u32,
    /// The queue of its turns: `main`, `subagent`, `teammate`, `cron` or `internal_announce`.
    #[schema(value_type = String)]
    pub lane: JobLane,
    /// What the session is doing: `running`, `queued` or `idle`.
    #[schema(value_type = String)]
    pub state: SessionActivity,
    /// The run that the session works on, if any.
    #[schema(value_type = Option<String>)]
    pub run_id: Option<RunId>,
    /// `running`, `ok`, `error`, `timeout` or `cancelled`. Null if no other session started it.
    #[schema(value_type = Option<String>)]
    pub run_status: Option<RunStatus>,
    /// The trace of the run, else of the latest turn. A trace connects all turns caused by one message.
    #[schema(value_type = Option<String>)]
    pub trace_id: Option<TraceId>,
    /// Milliseconds since the session was created.
    pub age_ms: i64,
    /// Tokens used. Null if a provider did not report them, or none was called.
    pub tokens: Option<i64>,
    /// Sessions started from this one, in order of their start. Archived ones are omitted.
    #[schema(no_recursion)]
    pub children: Vec<SessionNodeView>,
}
