//! The health of all instances.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct FleetHealth {
    /// `ok`, or `degraded` if an instance that should run does not run or does not answer.
    pub status: String,
    /// The version of the control plane.
    pub version: String,
    /// Milliseconds since the control plane started.
    pub uptime_ms: i64,
    /// The instances that are not archived.
    pub instances: Vec<InstanceHealth>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct InstanceHealth {
    /// The id of the instance.
    pub id: String,
    /// The name of the instance.
    pub name: String,
    /// The status, such as `running` or `stopped`.
    pub status: String,
    /// The process id, if it is running.
    pub pid: Option<i32>,
    /// The health the instance reports: `ok`, `degraded` or `draining`. Null if it does not run or does not answer.
    pub health: Option<String>,
    /// Milliseconds since it started, as it reports. Null if it does not run or does not answer.
    pub uptime_ms: Option<i64>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct VersionView {
    /// The version of the control plane.
    pub version: String,
    /// The scope of the calling token: `read`, `operate` or `admin`.
    pub scope: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct LivenessView {
    /// Always `ok`.
    pub status: String,
}
