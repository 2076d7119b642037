//! `[lanes]`: concurrency limits of turns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of concurrent turns by kind of work. Work of one kind never waits for a slot of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LanesConfig {
    /// Turns that answer people. Defaults to the number of CPU cores, at least 8 and at most 16.
    #[schemars(range(min = 1, max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main: Option<u16>,
    /// Turns of sub-agents and delegates.
    #[schemars(range(min = 1, max = 256))]
    pub subagent: u16,
    /// Turns of team members.
    #[schemars(range(min = 1, max = 256))]
    pub teammate: u16,
    /// Turns that cron jobs start.
    #[schemars(range(min = 1, max = 256))]
    pub cron: u16,
    /// Turns that process the result of a child while nobody waits for it.
    #[schemars(range(min = 1, max = 256))]
    pub internal_announce: u16,
}

impl Default for LanesConfig {
    fn default() -> Self {
        Self { main: None, subagent: 8, teammate: 10, cron: 2, internal_announce: 4 }
    }
}
