//! The event log, for people and tools.

use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListEventsQuery {
    /// Only events after this sequence number. A cursor takes precedence.
    pub after: Option<i64>,
    /// Only the newest events, this many and in order; at most 1000. All other parameters are ignored.
    #[param(minimum = 1)]
    pub last: Option<usize>,
    /// Only events of this kind.
    pub kind: Option<String>,
    /// Only events of this session.
    #[param(value_type = Option<String>)]
    pub session: Option<SessionKey>,
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    pub limit: Option<usize>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct EventList {
    /// The events in order.
    pub events: Vec<EventView>,
    /// The cursor of the next page. Null on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct EventView {
    /// The sequence number.
    pub seq: i64,
    /// The kind of event, such as `message.queued`.
    pub kind: String,
    /// The session it belongs to, if any.
    pub session_key: Option<String>,
    /// The turn it belongs to, if any.
    pub turn_id: Option<String>,
    /// The agent it belongs to, if any.
    pub agent_id: Option<String>,
    /// The trace it belongs to. A trace connects all turns caused by one message.
    pub trace_id: Option<String>,
    /// Details, depending on the kind.
    #[schema(value_type = Object)]
    pub data: Value,
    /// When the event happened.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
}
