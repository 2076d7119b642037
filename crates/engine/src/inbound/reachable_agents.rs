//! Which agents somebody may ask for by name. Owners may ask for all; anybody else for the one that answers them, those
//! that the config names for them, and those that may do no more than the one that answers. Whom a binding leads to one
//! agent also reaches no other agent's files and memories.

use polyclaw_domain::agent::{AgentSpec, widens_permissions};
use polyclaw_domain::authority::Authority;
use polyclaw_domain::channel::InboundMessage;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::route::BindingTier;
use polyclaw_store::agents::{self, StoredAgent};

use super::route::BindingRoute;
use crate::core::Engine;
use crate::error::Result;

/// What a name in front of a message, or `/agent`, can lead to.
#[derive(Clone, Debug)]
pub(crate) enum ReachableAgents {
    Every,
    /// No further than whom the bindings name, unless by one of these.
    From {
        routed: AgentId,
        named: Vec<AgentId>,
        /// A binding says that this agent answers.
        is_bound: bool,
    },
}

impl ReachableAgents {
    pub fn includes(&self, wanted: &AgentId, listed: &[StoredAgent], default: &AgentId) -> bool {
        let Self::From { routed, named, is_bound } = self else { return true };
        let spec = |id: &AgentId| listed.iter().map(|stored| &stored.spec).find(|spec| spec.agent_id == *id);
        let is_no_wider = |own: &AgentSpec, other: &AgentSpec| match is_bound {
            true => !widens_permissions(own, other, default),
            false => !has_more_rights(own, other, default),
        };
        let is_no_wider =
            || spec(routed).zip(spec(wanted)).is_some_and(|(own, other)| is_no_wider(own, other));
        routed == wanted || named.contains(wanted) || is_no_wider()
    }
}

/// Whether another agent may do more, its own files and memories aside: nobody was kept apart from them.
fn has_more_rights(own: &AgentSpec, other: &AgentSpec, default: &AgentId) -> bool {
    let becomes_default = other.agent_id == *default && own.agent_id != *default;
    becomes_default
        || widens_permissions(own, &AgentSpec { agent_id: own.agent_id.clone(), ..other.clone() }, default)
}

/// Told to whoever names an agent that is not theirs to ask.
pub(crate) fn unreachable_reply(wanted: &AgentId) -> String {
    format!(
        "The agent {wanted} is not available to you here. An owner of this assistant can switch this conversation to it."
    )
}

impl Engine {
    /// What the writer of a letter can reach by name.
    pub(super) fn reachable_agents(&self, message: &InboundMessage, place: &BindingRoute) -> ReachableAgents {
        let settings = self.settings();
        let rules = &settings.inbound;
        if rules.sender_authority(&message.context) == Authority::Owner {
            return ReachableAgents::Every;
        }
        let together = rules.broadcast_agents(&message.context).unwrap_or_default().iter();
        let allowed =
            rules.account_access(&message.context).map(|access| access.agents.as_slice()).unwrap_or_default();
        let named = together.chain(allowed).cloned().collect();
        let is_bound = place.tier != BindingTier::Default;
        ReachableAgents::From { routed: place.agent.clone(), named, is_bound }
    }

    pub(crate) async fn can_reach_agent(
        &self,
        reachable: &ReachableAgents,
        wanted: &AgentId,
    ) -> Result<bool> {
        if matches!(reachable, ReachableAgents::Every) {
            return Ok(true);
        }
        let listed = self.db().read(agents::list).await?;
        Ok(reachable.includes(wanted, &listed, &self.settings().default_agent))
    }
}
