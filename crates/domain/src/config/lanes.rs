//! `[lanes]`: how many turns run at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many turns run at once, by the kind of work. Work of one kind never waits for a slot of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LanesConfig {
    /// Turns that answer people. Without it: as many as the machine has cores, at least 8 and at most 16.
    #[schemars(range(min = 1, max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main: Option<u16>,
    /// Turns of sub-agents and delegates.
    #[schemars(range(min = 1, max = 256))]
    pub subagent: u16,
    /// Turns of team members.
    #[schemars(range(min = 1, max = 256))]
    pub teammate: u16,
    /// Turns that a schedule starts.
    #[schemars(range(min = 1, max = 256))]
    pub cron: u16,
    /// Turns that take up the result of a child while nobody is waiting.
    #[schemars(range(min = 1, max = 256))]
    pub internal_announce: u16,
}

impl Default for LanesConfig {
    fn default() -> Self {
        Self { main: None, subagent: 8, teammate: 10, cron: 2, internal_announce: 4 }
    }
}
