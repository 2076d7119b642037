//! `[sandbox]` and `[workers]`: sandbox and worker settings for all agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::ConfigReport;

/// Sandbox settings for all agents. The mode and limits are in `agents.defaults.sandbox` and each agent's `sandbox`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// Folders, besides those of the system, that programs may read and execute from, such as a compiler's. Absolute
    /// paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readable: Vec<String>,
    /// Whether to create namespaces with bubblewrap if Polyclaw itself may not.
    pub bubblewrap: bool,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self { readable: Vec::new(), bubblewrap: true }
    }
}

impl SandboxConfig {
    pub(super) fn report_errors(&self, report: &mut ConfigReport) {
        for (index, path) in self.readable.iter().enumerate() {
            if !path.starts_with('/') || path.trim_matches('/').is_empty() {
                let message = format!("{path:?} is not an absolute path of a folder");
                report.add_error(
                    &format!("sandbox.readable[{index}]"),
                    message,
                    "use an absolute path, such as \"/opt/tools\"",
                );
            }
        }
    }
}

/// The worker processes of agents with `isolation = "process"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerPoolConfig {
    /// Workers that each workspace keeps when idle.
    pub min: u16,
    /// Maximum number of workers of all agents.
    #[schemars(range(min = 1))]
    pub max: u16,
    /// Idle time after which a worker ends, in seconds.
    #[schemars(range(min = 1))]
    pub idle_seconds: u32,
    /// How long a call waits for a free worker before it is rejected, in seconds.
    #[schemars(range(min = 1))]
    pub wait_seconds: u32,
    /// Number of calls after which a worker is replaced.
    #[schemars(range(min = 1))]
    pub calls: u32,
}

impl Default for WorkerPoolConfig {
    fn default() -> Self {
        Self { min: 0, max: 8, idle_seconds: 60, wait_seconds: 30, calls: 200 }
    }
}

impl WorkerPoolConfig {
    pub(super) fn report_errors(&self, report: &mut ConfigReport) {
        if self.min > self.max {
            report.add_error("workers.min", "min must not exceed max", "lower min, or raise max");
        }
    }
}
