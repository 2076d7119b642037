//! Loop prevention between sessions: no self-send, a hop limit, and a budget of automatic turns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::glob::glob_matches;
use crate::id::AgentId;
use crate::session_key::SessionKey;

/// First rejected hop count; 0 to 7 are accepted.
pub const MAX_HOPS: u32 = 8;

pub const TOO_MANY_HOPS: &str = "too_many_hops";
pub const BUDGET_SPENT: &str = "autonomous_turns_exhausted";

/// A message from one session to another, as known to the runtime; nothing here comes from its text.
#[derive(Clone, Debug)]
pub struct RelayRequest {
    pub from: SessionKey,
    /// Hop count of the message: that of the sender plus one.
    pub hop: u32,
    /// Number of automatic turns that this trace has already caused.
    pub automatic_turns: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelayRefusal {
    #[error("a session cannot send to itself")]
    SelfSend,
    #[error("the message went through too many agents (hop {0}; the maximum is 7)")]
    TooManyHops(u32),
    #[error("this trace has used {0} automatic turns: a person must continue it")]
    BudgetSpent(u32),
}

impl RelayRefusal {
    pub fn code(&self) -> &'static str {
        match self {
            Self::SelfSend => "self_send",
            Self::TooManyHops(_) => TOO_MANY_HOPS,
            Self::BudgetSpent(_) => BUDGET_SPENT,
        }
    }
}

pub fn check_relay(relay: &RelayRequest, to: &SessionKey, budget: u32) -> Result<(), RelayRefusal> {
    if relay.from == *to {
        return Err(RelayRefusal::SelfSend);
    }
    if relay.hop >= MAX_HOPS {
        return Err(RelayRefusal::TooManyHops(relay.hop));
    }
    if relay.automatic_turns >= budget {
        return Err(RelayRefusal::BudgetSpent(relay.automatic_turns));
    }
    Ok(())
}

/// Whether agents may write into each other's sessions. A session may always write to those it spawned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentToAgent {
    /// Whether sessions may write to sessions that they did not spawn.
    pub enabled: bool,
    /// The agents that may write to each other, by id; `*` matches any text. Both the sender and the recipient must be
    /// listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
}

/// The rule that is missing for one agent to write to another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissingRelayRule {
    #[error("tools.agent_to_agent.enabled is false")]
    Enabled,
    #[error("tools.agent_to_agent.allow does not include '{0}'")]
    Allowed(AgentId),
}

impl AgentToAgent {
    pub fn check_agents(&self, from: &AgentId, to: &AgentId) -> Result<(), MissingRelayRule> {
        if !self.enabled {
            return Err(MissingRelayRule::Enabled);
        }
        let is_named = |id: &AgentId| self.allow.iter().any(|entry| glob_matches(entry, id.as_str()));
        match [from, to].into_iter().find(|id| !is_named(id)) {
            Some(id) => Err(MissingRelayRule::Allowed(id.clone())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_to_agent_relay_needs_both_agents_allowed() {
        let id = |text: &str| AgentId::parse(text).unwrap();
        let rules = |enabled, allow: &[&str]| AgentToAgent {
            enabled,
            allow: allow.iter().map(|entry| (*entry).to_owned()).collect(),
        };
        let asked = |rules: AgentToAgent| rules.check_agents(&id("a"), &id("b"));
        assert_eq!(asked(rules(false, &["*"])), Err(MissingRelayRule::Enabled));
        assert_eq!(asked(rules(true, &[])), Err(MissingRelayRule::Allowed(id("a"))));
        assert_eq!(asked(rules(true, &["a"])), Err(MissingRelayRule::Allowed(id("b"))));
        assert_eq!(asked(rules(true, &["b"])), Err(MissingRelayRule::Allowed(id("a"))));
        assert_eq!(asked(rules(true, &["a", "b"])), Ok(()));
        assert_eq!(asked(rules(true, &["*"])), Ok(()));
    }

    #[test]
    fn relay_loops_are_refused_with_reason() {
        let me = SessionKey::main(&AgentId::main());
        let other = SessionKey::for_direct(&AgentId::main(), "web", "x");
        let relay = |from: &SessionKey, hop, automatic_turns| RelayRequest {
            from: from.clone(),
            hop,
            automatic_turns,
        };
        assert_eq!(check_relay(&relay(&other, 7, 19), &me, 20), Ok(()));
        assert_eq!(check_relay(&relay(&me, 0, 0), &me, 20), Err(RelayRefusal::SelfSend));
        assert_eq!(check_relay(&relay(&other, 8, 0), &me, 20), Err(RelayRefusal::TooManyHops(8)));
        assert_eq!(check_relay(&relay(&other, 1, 20), &me, 20), Err(RelayRefusal::BudgetSpent(20)));
    }
}
