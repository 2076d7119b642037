//! Which agents a sender may address by name. Owners may address all. Others may address the agent that answers them,
//! those the config names for them, and those with no more rights than the answering agent. Senders bound to an agent
//! also cannot reach other agents' files and memories.

use polyclaw_domain::agent::{AgentSpec, widens_permissions};
use polyclaw_domain::authority::Authority;
use polyclaw_domain::channel::InboundMessage;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::route::BindingTier;
use polyclaw_store::agents::{self, StoredAgent};

use super::route::BindingRoute;
use crate::core::Engine;
use crate::error::Result;

/// The agents that a prefix or `/agent` can lead to.
#[derive(Clone, Debug)]
pub(crate) enum ReachableAgents {
    Every,
    /// The agent the bindings choose, the `named` ones, and agents with no more rights than it.
    From {
        routed: AgentId,
        named: Vec<AgentId>,
        /// A binding chose the agent.
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

/// Whether another agent has more rights, apart from its own files and memories: without a binding,
/// access to those was never restricted.
fn has_more_rights(own: &AgentSpec, other: &AgentSpec, default: &AgentId) -> bool {
    let becomes_default = other.agent_id == *default && own.agent_id != *default;
    becomes_default
        || widens_permissions(own, &AgentSpec { agent_id: own.agent_id.clone(), ..other.clone() }, default)
}

impl Engine {
    /// Agents that the sender of a message can address.
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
