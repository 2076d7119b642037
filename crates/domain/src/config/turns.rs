//! `[turns]`: the limits of one turn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limits of one turn. A turn that reaches one ends, frees its session, and says so in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TurnsConfig {
    /// How often the model may call tools and be called again.
    #[schemars(range(min = 1))]
    pub max_rounds: u32,
    /// How long a turn may show no sign of life: no token, no tool output, no news from a child.
    #[schemars(range(min = 1))]
    pub stall_seconds: u32,
    /// How long the whole turn may take.
    #[schemars(range(min = 1))]
    pub timeout_minutes: u32,
    /// How often the process may die under a turn, with no step stored meanwhile, before the turn is given up. Graceful
    /// stops and deaths that other turns shared do not count.
    #[schemars(range(min = 1))]
    pub attempts: u32,
    /// How long a process that stopped renewing keeps its turns before another takes them over.
    #[schemars(range(min = 1))]
    pub lease_seconds: u32,
    /// How often the same tool may give the same result for the same arguments before it counts as a loop.
    #[schemars(range(min = 2))]
    pub repeat_limit: u32,
    /// How many turns agents may cause each other, from one message of a person, before a person must continue.
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
