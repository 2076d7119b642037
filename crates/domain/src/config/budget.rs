//! `[budget]`: what the instance, and each of its sessions and teams, may spend.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent;

/// What all agents of the instance may spend together, beside what each of them may. Where nothing is said there is no
/// limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetConfig {
    /// Tokens in and out, in one day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// Dollars, in one day.
    #[schemars(range(min = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_per_day: Option<f64>,
    /// Dollars, for one turn of any agent.
    #[schemars(range(min = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_per_turn: Option<f64>,
    /// What each session may spend, together with all that is begun for it.
    pub session: agent::AgentBudget,
    /// What the members of each team may spend together, with all that is begun for them. Its lead is a session like any
    /// other.
    pub team: agent::AgentBudget,
    /// When a day begins: so many minutes from UTC. 60 is Vienna in winter, -300 is New York.
    #[schemars(range(min = -840, max = 840))]
    pub utc_offset_minutes: i32,
}

impl BudgetConfig {
    /// The limits of the instance as a whole.
    pub fn instance_budget(&self) -> agent::AgentBudget {
        agent::AgentBudget {
            tokens_per_day: self.tokens_per_day,
            usd_per_day: self.usd_per_day,
            usd_per_turn: self.usd_per_turn,
        }
    }
}
