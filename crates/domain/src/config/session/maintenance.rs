//! `[session.maintenance]`: what becomes of conversations that nobody uses any more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What becomes of conversations that nobody uses any more. One in which something runs or waits is never touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MaintenanceConfig {
    /// Whether it is done, or only said.
    pub mode: MaintenanceMode,
    /// A conversation is removed after so many days without a message.
    #[schemars(range(min = 1, max = 3_650))]
    pub prune_after_days: u32,
    /// So many conversations are kept for each agent, those used last.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_entries: u32,
    /// What is removed is written to `archive/` first. A file there is followed by another at this size.
    #[schemars(range(min = 1, max = 10_000))]
    pub rotate_mb: u32,
    /// All of `archive/` together; beyond it the oldest files go. Without it they stay.
    #[schemars(range(min = 1, max = 10_000_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive_budget_mb: Option<u32>,
}

/// Whether something is done, or only said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaintenanceMode {
    /// What would be removed is said in an event, every hour.
    #[default]
    Warn,
    /// It is removed, every hour.
    Enforce,
}

impl Default for MaintenanceConfig {
    fn default() -> Self {
        Self {
            mode: MaintenanceMode::default(),
            prune_after_days: 30,
            max_entries: 500,
            rotate_mb: 10,
            archive_budget_mb: None,
        }
    }
}
