//! `[sandbox]` and `[workers]`: where tools run, and what they reach, for all agents together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::ConfigReport;

/// What is the same for every agent's sandbox. How far each reaches is in `agents.defaults.sandbox` and the agent's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// Folders beside the system's own that programs may read and run from, such as a compiler's. Absolute paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readable: Vec<String>,
    /// Lets bubblewrap make the namespaces where Polyclaw itself may not.
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
                    "write it out, such as \"/opt/tools\"",
                );
            }
        }
    }
}

/// The worker processes of agents with `isolation = "process"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerPoolConfig {
    /// Workers of one workspace that stay when nothing is to do.
    pub min: u16,
    /// Workers at once, over all agents.
    #[schemars(range(min = 1))]
    pub max: u16,
    /// How long one without work stays.
    #[schemars(range(min = 1))]
    pub idle_seconds: u32,
    /// How long a call waits for a free one before it is refused.
    #[schemars(range(min = 1))]
    pub wait_seconds: u32,
    /// Calls after which a worker is replaced by a fresh one.
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
            report.add_error(
                "workers.min",
                "there can not be more idle workers than workers",
                "lower min, or raise max",
            );
        }
    }
}
