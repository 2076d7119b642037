//! Past turns for operators: request, place and result of each. `turns` has their details.

use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListHistoryQuery {
    /// Page size. At most 1000, default 20.
    #[param(minimum = 1)]
    pub limit: Option<usize>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Only turns in this state: `queued`, `running`, `done`, `failed`, `cancelled` or `steered`.
    pub status: Option<String>,
    /// Only turns from this channel.
    pub channel: Option<String>,
    /// Only turns queued at or after this time.
    #[param(value_type = Option<String>, format = DateTime)]
    pub after: Option<Millis>,
    /// Only turns queued before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    pub before: Option<Millis>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct PastTurnList {
    /// The turns of this page.
    pub tasks: Vec<PastTurnView>,
    /// The cursor of the next page. Null on the last page.
    pub next_cursor: Option<String>,
    /// Whether the history could be read.
    pub data_available: bool,
    /// Why the history could not be read.
    pub message: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = PastTurn)]
pub struct PastTurnView {
    /// The id of the turn.
    pub id: String,
    /// The session of the turn.
    pub session_key: String,
    /// The agent that answered.
    pub agent_id: String,
    /// The channel the message came from.
    pub channel: Option<String>,
    /// The state of the turn: `queued`, `running`, `done`, `failed`, `cancelled` or `steered` (interrupted by a newer
    /// message).
    pub status: String,
    /// The beginning of the message.
    pub summary: Option<String>,
    /// The beginning of the reply, or the error.
    pub outcome: Option<String>,
    /// The code of the error, if the turn failed.
    pub error_code: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// Milliseconds from start to end. Null while the turn has not ended.
    pub duration_ms: Option<i64>,
    /// The trace of the turn. A trace connects all turns caused by one message.
    pub trace_id: String,
    /// When the turn was queued.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
}
