//! Why this agent and no other: every binding, and what kept it from answering.

use serde::Serialize;

use crate::arrival::Arrival;
use crate::id::AgentId;
use crate::route::{Router, Tier};

/// What a binding asks for that the message is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    Channel,
    Account,
    Peer,
    Guild,
    Roles,
    Team,
    /// It holds, and a closer one does too.
    Tier,
    /// It holds as closely as the one before it in the config.
    Order,
}

impl Loss {
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Channel => "it is for another channel",
            Self::Account => "it is for another account",
            Self::Peer => "it is for another conversation",
            Self::Guild => "it is for another server",
            Self::Roles => "the sender has none of its roles",
            Self::Team => "it is for another workspace",
            Self::Tier => "it holds, but another one fits more closely",
            Self::Order => "it holds, but one before it in the config fits as closely",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// The place of the binding in the config.
    pub binding: usize,
    pub agent: AgentId,
    /// Where it holds, or where it would.
    pub tier: Tier,
    /// `None`: it answers.
    pub loss: Option<Loss>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    pub agent: AgentId,
    pub tier: Tier,
    pub binding: Option<usize>,
    pub candidates: Vec<Candidate>,
}

impl Router {
    /// The same choice, with every candidate. Looks at all bindings, so it is for people, not for messages.
    pub fn explain(&self, arrival: &Arrival) -> Explanation {
        let choice = self.choose(arrival);
        let candidates = self.bindings.iter().enumerate().map(|(at, binding)| {
            let (tier, failed) = self.standing(at, arrival);
            let beaten = if tier == choice.tier { Loss::Order } else { Loss::Tier };
            let wins = choice.binding == Some(at);
            let loss = failed.or((!wins).then_some(beaten));
            Candidate { binding: at, agent: binding.agent_id.clone(), tier, loss }
        });
        let candidates = candidates.collect();
        Explanation { agent: choice.agent.clone(), tier: choice.tier, binding: choice.binding, candidates }
    }

    /// The closest tier at which a binding holds, or its own tier and what is missing there.
    fn standing(&self, at: usize, arrival: &Arrival) -> (Tier, Option<Loss>) {
        let wanted = &self.bindings[at].wanted;
        let own = wanted.tier();
        let Some(index) = self.channels.get(&arrival.channel).filter(|_| wanted.channel == arrival.channel)
        else {
            return (own, Some(Loss::Channel));
        };
        let loss = self.loss(at, own, arrival, &index.default_account);
        let through_parent = own == Tier::Peer
            && loss == Some(Loss::Peer)
            && self.loss(at, Tier::ParentPeer, arrival, &index.default_account).is_none();
        if through_parent { (Tier::ParentPeer, None) } else { (own, loss) }
    }
}
