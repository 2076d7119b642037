//! Liveness and readiness. Both need no token, because they reveal nothing sensitive.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct HealthView {
    /// `ok`, `degraded` or `draining` (shutting down).
    pub status: String,
    /// The version of Polyclaw.
    pub version: String,
    /// Milliseconds since the process started.
    pub uptime_ms: i64,
    /// The state of the database.
    pub store: StoreHealth,
    /// The names of the configured channels.
    pub channels: Vec<String>,
    /// The background loops.
    pub tasks: Vec<TaskHealth>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct StoreHealth {
    /// The database engine: `sqlite` or `postgres`.
    pub engine: String,
    /// `ok`, `unavailable`, or why nothing can be written: `disk_full`, `store_read_only`, `store_unavailable`.
    pub status: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = BackgroundLoop)]
pub struct TaskHealth {
    /// The name of the loop.
    pub task: String,
    /// `running`, `restarting` or `stopped` (not needed here).
    pub state: String,
    /// How often the loop was restarted.
    pub restarts: u32,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ReadinessView {
    /// Always true; an instance that is not ready answers with an error.
    pub ready: bool,
}
