//! Explains a routing decision: every binding, and why it was not chosen.

use serde::Serialize;

use crate::id::AgentId;
use crate::inbound::InboundContext;
use crate::route::{BindingTier, Router};

/// The reason why a binding was not chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BindingMismatch {
    Channel,
    Account,
    Peer,
    Guild,
    Roles,
    Team,
    /// It matches, but a more specific one does too.
    Tier,
    /// It matches, but an equally specific one comes first in the config.
    Order,
}

impl BindingMismatch {
    pub fn description(self) -> &'static str {
        match self {
            Self::Channel => "it is for another channel",
            Self::Account => "it is for another account",
            Self::Peer => "it is for another conversation",
            Self::Guild => "it is for another server",
            Self::Roles => "the sender has none of its roles",
            Self::Team => "it is for another workspace",
            Self::Tier => "it matches, but another binding is more specific",
            Self::Order => "it matches, but an earlier binding in the config is equally specific",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BindingCandidate {
    /// Index of the binding in the config.
    pub binding: usize,
    pub agent: AgentId,
    /// The tier at which it matches or would match.
    pub tier: BindingTier,
    /// `None` if it was chosen.
    pub mismatch: Option<BindingMismatch>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BindingExplanation {
    pub agent: AgentId,
    pub tier: BindingTier,
    pub binding: Option<usize>,
    pub candidates: Vec<BindingCandidate>,
}

impl Router {
    /// Makes the same choice and lists every candidate. It examines all bindings, so it is for people, not for
    /// messages.
    pub fn explain_route(&self, arrival: &InboundContext) -> BindingExplanation {
        let choice = self.choose_agent(arrival);
        let candidates = self.bindings.iter().enumerate().map(|(at, binding)| {
            let (tier, failed) = self.tier_and_mismatch(at, arrival);
            let beaten = if tier == choice.tier { BindingMismatch::Order } else { BindingMismatch::Tier };
            let wins = choice.binding == Some(at);
            let loss = failed.or((!wins).then_some(beaten));
            BindingCandidate { binding: at, agent: binding.agent_id.clone(), tier, mismatch: loss }
        });
        let candidates = candidates.collect();
        BindingExplanation {
            agent: choice.agent.clone(),
            tier: choice.tier,
            binding: choice.binding,
            candidates,
        }
    }

    /// Returns the most specific tier at which a binding matches, else its own tier and the mismatch.
    fn tier_and_mismatch(
        &self,
        at: usize,
        arrival: &InboundContext,
    ) -> (BindingTier, Option<BindingMismatch>) {
        let wanted = &self.bindings[at].match_rule;
        let own = wanted.binding_tier();
        let Some(index) = self.channels.get(&arrival.channel).filter(|_| wanted.channel == arrival.channel)
        else {
            return (own, Some(BindingMismatch::Channel));
        };
        let loss = self.find_mismatch(at, own, arrival, &index.default_account);
        let through_parent = own == BindingTier::Peer
            && loss == Some(BindingMismatch::Peer)
            && self.find_mismatch(at, BindingTier::ParentPeer, arrival, &index.default_account).is_none();
        if through_parent { (BindingTier::ParentPeer, None) } else { (own, loss) }
    }
}
