//! Delegation statistics: how often agents delegate to each other, with which results and latency.

use polyclaw_domain::id::AgentId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct DelegationList {
    /// One entry per pair of agents.
    pub delegations: Vec<DelegationView>,
}

/// Delegations from one agent to another since this process started.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct DelegationView {
    /// The agent that delegates.
    #[schema(value_type = String)]
    pub caller: AgentId,
    /// The agent that does the work.
    #[schema(value_type = String)]
    pub target: AgentId,
    /// Delegations running now, on all nodes.
    pub active: i64,
    /// Delegations that succeeded.
    pub completed: u64,
    /// Delegations that timed out.
    pub timeout: u64,
    /// Delegations that failed.
    pub error: u64,
    /// Delegations that were cancelled.
    pub cancelled: u64,
    /// Delegations that were not started: not permitted, nested too deeply, or too many.
    pub rejected: u64,
    /// The median duration of those that ended in the last hour. Null if none did.
    pub p50_ms: Option<i64>,
    /// The 95th percentile of their duration. Null if none ended in the last hour.
    pub p95_ms: Option<i64>,
}
