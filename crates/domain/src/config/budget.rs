//! `[budget]`: spending limits of the instance and of its sessions and teams.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent;

/// Spending limits of all agents together, in addition to the limits of each agent. Omitted values are unlimited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetConfig {
    /// Input and output tokens per day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// US dollars per day.
    #[schemars(range(min = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_per_day: Option<f64>,
    /// US dollars per turn of any agent.
    #[schemars(range(min = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_per_turn: Option<f64>,
    /// Limits of each session, including everything started for it.
    pub session: agent::AgentBudget,
    /// Limits of the members of each team together, including everything started for them. The lead has a session
    /// budget like any other session.
    pub team: agent::AgentBudget,
    /// Start of a day as an offset from UTC in minutes. 60 is Vienna in winter, -300 is New York.
    #[schemars(range(min = -840, max = 840))]
    pub utc_offset_minutes: i32,
}

impl BudgetConfig {
    /// Returns the limits of the instance as a whole.
    pub fn instance_budget(&self) -> agent::AgentBudget {
        agent::AgentBudget {
            tokens_per_day: self.tokens_per_day,
            usd_per_day: self.usd_per_day,
            usd_per_turn: self.usd_per_turn,
        }
    }
}
