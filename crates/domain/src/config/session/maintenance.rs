//! `[session.maintenance]`: cleanup of unused conversations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Cleanup of unused conversations. Conversations with running or waiting turns are never removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MaintenanceConfig {
    /// Whether conversations are removed or only reported.
    pub mode: MaintenanceMode,
    /// Days without a message after which a conversation is removed.
    #[schemars(range(min = 1, max = 3_650))]
    pub prune_after_days: u32,
    /// Maximum number of conversations per agent; the most recently used are kept.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_entries: u32,
    /// Removed conversations are first written to `archive/`. A file that reaches this size is followed by a new one.
    #[schemars(range(min = 1, max = 10_000))]
    pub rotate_mb: u32,
    /// Maximum size of `archive/`; beyond it the oldest files are deleted. If omitted, it is unlimited.
    #[schemars(range(min = 1, max = 10_000_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive_budget_mb: Option<u32>,
}

/// Whether conversations are removed or only reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaintenanceMode {
    /// An hourly event reports what would be removed.
    #[default]
    Warn,
    /// They are removed every hour.
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
