//! Queries of the sockets of the control plane: `/ws/instances`, `/ws/instances/{id}/logs`, `/ws/messages` and
//! `/ws/events`.

use polyclaw_domain::session_key::SessionKey;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EventSocketQuery {
    /// Only events of this instance, by id or name.
    pub instance: Option<String>,
    /// Only events of this session.
    pub session: Option<SessionKey>,
    /// Only events of this kind, or of all kinds below one: `turn.*`.
    pub kind: Option<String>,
    /// A one-time code, for pages of other origins.
    pub code: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FleetSocketQuery {
    /// A one-time code, for pages of other origins.
    pub code: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeSocketQuery {
    /// Only messages from or to this instance, by id or name.
    pub instance: Option<String>,
    /// Only messages with this correlation id.
    pub correlation_id: Option<String>,
    /// A one-time code, for pages of other origins.
    pub code: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LogSocketQuery {
    /// The number of lines to send first. Default 100, at most 1000.
    pub backlog: Option<usize>,
    /// A one-time code, for pages of other origins.
    pub code: Option<String>,
}
