//! `[turns]`: the limits of one turn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limits of one turn. A turn that reaches one ends, frees its session, and reports it in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TurnsConfig {
    /// Maximum rounds of tool calls by the model.
    #[schemars(range(min = 1))]
    pub max_rounds: u32,
    /// Maximum inactivity of a turn, in seconds: no token, no tool output, no news from a child.
    #[schemars(range(min = 1))]
    pub stall_seconds: u32,
    /// Maximum duration of a turn, in minutes.
    #[schemars(range(min = 1))]
    pub timeout_minutes: u32,
    /// Number of crashes during a turn, without a new stored step in between, after which it is given up. Graceful
    /// stops and crashes shared with other turns do not count.
    #[schemars(range(min = 1))]
    pub attempts: u32,
    /// How long a process that stops renewing its leases keeps its turns before another takes over, in seconds.
    #[schemars(range(min = 1))]
    pub lease_seconds: u32,
    /// How often a tool may return the same result for the same arguments before that counts as a loop.
    #[schemars(range(min = 2))]
    pub repeat_limit: u32,
    /// Number of turns that agents may cause each other after one message of a person, before a person must continue.
    pub automatic_budget: u32,
}

impl Default for TurnsConfig {
    fn default() -> Self {
        Self {
            max_rounds: 50,
            stall_seconds: 120,
            timeout_minutes: 30,
            attempts: 3,
            lease_seconds: 30,
            repeat_limit: 4,
            automatic_budget: 20,
        }
    }
}
