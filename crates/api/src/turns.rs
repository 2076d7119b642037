//! Turns: their request, steps and result.

use polyclaw_domain::id::{AgentId, MessageId, TraceId, TurnId};
use polyclaw_domain::job::{JobLane, JobState};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::messages::TurnReply;
use crate::transcript::SessionMessageView;
use crate::usage::TokenUsageView;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TurnView {
    /// The id of the turn.
    #[schema(value_type = String)]
    pub id: TurnId,
    /// The session of the turn.
    #[schema(value_type = String)]
    pub session_key: SessionKey,
    /// The agent that answers.
    #[schema(value_type = String)]
    pub agent_id: AgentId,
    /// The queue of the turn: `main`, `subagent`, `teammate`, `cron` or `internal_announce`.
    #[schema(value_type = String)]
    pub lane: JobLane,
    /// The state of the turn: `queued`, `running`, `done`, `failed`, `cancelled` or `steered` (interrupted by a newer
    /// message).
    #[schema(value_type = String)]
    pub state: JobState,
    /// How often the turn was started. It is more than 1 after a crash.
    pub attempt: u32,
    /// The model that answered.
    pub model: Option<String>,
    /// Tokens used by the turn.
    pub usage: TokenUsageView,
    /// The message with the reply.
    #[schema(value_type = Option<String>)]
    pub reply_id: Option<MessageId>,
    /// The turn that continues the task of a steered one.
    #[schema(value_type = Option<String>)]
    pub continued_by: Option<TurnId>,
    /// The trace of the turn. A trace connects all turns caused by one message.
    #[schema(value_type = String)]
    pub trace_id: TraceId,
    /// When the turn was queued.
    #[schema(value_type = String, format = DateTime)]
    pub queued_at: Millis,
    /// When the turn started.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Millis>,
    /// When the turn ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Millis>,
    /// The error, if the turn failed.
    pub error: Option<TurnError>,
    /// The answer. Only with `wait`, once this turn or one that continues it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<TurnReply>,
    /// Inputs, model steps and tool results. Only when a single turn is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<SessionMessageView>>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TurnError {
    /// The error code.
    pub code: String,
    /// The error message.
    pub message: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListTurnsQuery {
    /// Only turns of this session.
    #[param(value_type = Option<String>)]
    pub session: Option<SessionKey>,
    /// Only turns in this state: `queued`, `running`, `done`, `failed`, `cancelled` or `steered`.
    #[param(value_type = Option<String>)]
    pub state: Option<JobState>,
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    pub limit: Option<usize>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TurnList {
    /// The turns of this page.
    pub turns: Vec<TurnView>,
    /// The cursor of the next page. Null on the last page.
    pub next_cursor: Option<String>,
}
