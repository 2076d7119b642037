//! Delivers messages to instances and records the results.

use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::control::messages::EnvelopeView;

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PollPendingQuery {
    /// How many seconds to wait for a message if there is none. Default 0, at most 60.
    #[param(maximum = 60)]
    pub wait: Option<u64>,
    /// The number of messages. Default 1, at most 100.
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<usize>,
    /// Identifies the polling process. Messages leased to earlier processes of the instance are delivered again
    /// immediately.
    pub process_epoch: Option<String>,
    /// A lease id chosen by the caller. Polling again with it after a lost response returns the same messages.
    pub lease: Option<String>,
    /// Only messages that answer others: `response`, `task.result` and `task.status`.
    #[serde(default)]
    #[param(required = false)]
    pub only_answers: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct PendingEnvelopeList {
    /// The leased messages.
    pub messages: Vec<PendingEnvelope>,
}

/// A message leased to the caller.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct PendingEnvelope {
    #[serde(flatten)]
    pub message: EnvelopeView,
    /// The content of the message.
    #[schema(value_type = Object)]
    pub payload: Value,
    /// The id of the lease, required to acknowledge, fail or renew.
    pub lease: String,
    /// When the lease expires.
    #[schema(value_type = String, format = DateTime)]
    pub leased_until: Millis,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseBody {
    /// The lease id from the poll.
    pub lease: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailPendingBody {
    /// The lease id from the poll.
    pub lease: String,
    /// The reason, for people.
    #[serde(default)]
    #[schema(required = false)]
    pub error: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct RenewedLease {
    /// When the renewed lease expires.
    #[schema(value_type = String, format = DateTime)]
    pub leased_until: Millis,
}
