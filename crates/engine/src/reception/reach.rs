//! Which agents somebody may ask for by name. Owners may ask for all; anybody else for the one that answers them, those
//! that the config names for them, and those that may do no more than the one that answers.

use polyclaw_domain::agent::widens;
use polyclaw_domain::authority::Authority;
use polyclaw_domain::channel::Letter;
use polyclaw_domain::id::AgentId;
use polyclaw_store::agents::{self, Stored};

use super::route::Place;
use crate::core::Engine;
use crate::error::Result;

/// What a name in front of a message, or `/agent`, can lead to.
#[derive(Clone, Debug)]
pub(crate) enum Reachable {
    Every,
    /// No further than whom the bindings name, unless by one of these.
    From {
        routed: AgentId,
        named: Vec<AgentId>,
    },
}

impl Reachable {
    /// For whoever is no owner, where this agent answers.
    pub fn from_agent(routed: AgentId) -> Self {
        Self::From { routed, named: Vec::new() }
    }

    pub fn includes(&self, wanted: &AgentId, listed: &[Stored], default: &AgentId) -> bool {
        let Self::From { routed, named } = self else { return true };
        let spec = |id: &AgentId| listed.iter().map(|stored| &stored.spec).find(|spec| spec.agent_id == *id);
        let is_no_wider =
            || spec(routed).zip(spec(wanted)).is_some_and(|(own, other)| !widens(own, other, default));
        routed == wanted || named.contains(wanted) || is_no_wider()
    }
}

/// Told to whoever names an agent that is not theirs to ask.
pub(crate) fn refusal(wanted: &AgentId) -> String {
    format!(
        "The agent {wanted} is not available to you here. An owner of this assistant can switch this conversation to it."
    )
}

impl Engine {
    /// What the writer of a letter can reach by name.
    pub(super) fn reachable(&self, letter: &Letter, place: &Place) -> Reachable {
        let settings = self.settings();
        let rules = &settings.reception;
        if rules.authority(&letter.arrival) == Authority::Owner {
            return Reachable::Every;
        }
        let together = rules.group(&letter.arrival).unwrap_or_default().iter();
        let allowed =
            rules.access_of(&letter.arrival).map(|access| access.agents.as_slice()).unwrap_or_default();
        Reachable::From { routed: place.agent.clone(), named: together.chain(allowed).cloned().collect() }
    }

    pub(crate) async fn may_reach(&self, reachable: &Reachable, wanted: &AgentId) -> Result<bool> {
        if matches!(reachable, Reachable::Every) {
            return Ok(true);
        }
        let listed = self.db().read(agents::list).await?;
        Ok(reachable.includes(wanted, &listed, &self.settings().default_agent))
    }
}
