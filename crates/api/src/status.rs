//! Counts of what the instance is doing.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Counts)]
pub struct StatusView {
    /// The number of sessions.
    pub sessions: i64,
    /// Running turns, on all nodes.
    pub running: i64,
    /// Messages and interrupted tasks that wait to be handled.
    pub waiting: i64,
    /// Unsafe settings, most severe first.
    pub warnings: Vec<SettingWarning>,
}

/// An unsafe setting.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = SafetyWarning)]
pub struct SettingWarning {
    /// A stable code, such as `running_as_root`.
    pub code: String,
    /// What is unsafe.
    pub message: String,
    /// How to fix it.
    pub hint: String,
}
