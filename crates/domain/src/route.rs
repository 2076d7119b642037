//! Routing: bindings in nine tiers decide which agent answers. Routing is a pure function of the inbound message and
//! uses indexes, so that ten thousand bindings cost as much as ten.

mod explain;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::AgentId;
use crate::inbound::{ChatPeer, InboundContext};
use crate::scope::DmScope;

pub use explain::{BindingCandidate, BindingExplanation, BindingMismatch};

/// Matches every peer of a kind, or every account of a channel.
pub const WILDCARD: &str = "*";

/// Routes messages from one place to one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// The agent that answers.
    pub agent_id: AgentId,
    /// Conditions on the message. All given ones must hold.
    #[serde(rename = "match")]
    pub match_rule: BindingMatch,
    /// How direct conversations are separated here; overrides `session.dm_scope`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dm_scope: Option<DmScope>,
}

/// Conditions on a message. All given ones must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BindingMatch {
    /// The channel, such as `telegram`.
    pub channel: String,
    /// The receiving account. Defaults to the channel's default account; `*` is every account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// The conversation. A binding of a conversation also matches its threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<ChatPeer>,
    /// The server (guild).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guild_id: Option<String>,
    /// Roles in that server; the sender must have one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// The workspace (Slack team).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team_id: Option<String>,
}

/// How specific a binding is, most specific first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BindingTier {
    Peer,
    ParentPeer,
    PeerWildcard,
    GuildRoles,
    Guild,
    Team,
    Account,
    Channel,
    Default,
}

impl BindingTier {
    pub const ALL: [Self; 9] = [
        Self::Peer,
        Self::ParentPeer,
        Self::PeerWildcard,
        Self::GuildRoles,
        Self::Guild,
        Self::Team,
        Self::Account,
        Self::Channel,
        Self::Default,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::ParentPeer => "parent_peer",
            Self::PeerWildcard => "peer_wildcard",
            Self::GuildRoles => "guild_roles",
            Self::Guild => "guild",
            Self::Team => "team",
            Self::Account => "account",
            Self::Channel => "channel",
            Self::Default => "default",
        }
    }
}

/// The chosen agent and the binding that chose it. Without a binding it is the default agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteChoice<'a> {
    pub agent: &'a AgentId,
    pub tier: BindingTier,
    /// Index of the binding in the config.
    pub binding: Option<usize>,
    pub dm_scope: Option<DmScope>,
}

/// The bindings of an instance, indexed by their most specific condition.
#[derive(Clone, Debug)]
pub struct Router {
    bindings: Vec<Binding>,
    default: AgentId,
    channels: HashMap<String, BindingIndex>,
}

/// The bindings of one channel. Every list is in config order.
#[derive(Clone, Debug, Default)]
struct BindingIndex {
    default_account: String,
    peers: HashMap<String, Vec<usize>>,
    wildcards: Vec<usize>,
    roles: HashMap<(String, String), Vec<usize>>,
    guilds: HashMap<String, Vec<usize>>,
    teams: HashMap<String, Vec<usize>>,
    accounts: HashMap<String, Vec<usize>>,
    rest: Vec<usize>,
}

impl Router {
    /// `default_account` returns the account of a channel that a binding without an account means.
    pub fn new(bindings: Vec<Binding>, default: AgentId, default_account: impl Fn(&str) -> String) -> Self {
        let mut channels: HashMap<String, BindingIndex> = HashMap::new();
        for (at, binding) in bindings.iter().enumerate() {
            let wanted = &binding.match_rule;
            let index = channels.entry(wanted.channel.clone()).or_insert_with(|| BindingIndex {
                default_account: default_account(&wanted.channel),
                ..BindingIndex::default()
            });
            index.add_binding(at, wanted);
        }
        Self { bindings, default, channels }
    }

    /// Returns the bindings in config order.
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// Returns the most specific binding, or the default agent. Among equals the first in the config wins.
    pub fn choose_agent(&self, arrival: &InboundContext) -> RouteChoice<'_> {
        let found = self.channels.get(&arrival.channel).and_then(|index| {
            BindingTier::ALL
                .into_iter()
                .find_map(|tier| Some((tier, self.first_binding(index, tier, arrival)?)))
        });
        match found {
            Some((tier, at)) => {
                let binding = &self.bindings[at];
                RouteChoice { agent: &binding.agent_id, tier, binding: Some(at), dm_scope: binding.dm_scope }
            }
            None => RouteChoice {
                agent: &self.default,
                tier: BindingTier::Default,
                binding: None,
                dm_scope: None,
            },
        }
    }

    fn first_binding(
        &self,
        index: &BindingIndex,
        tier: BindingTier,
        arrival: &InboundContext,
    ) -> Option<usize> {
        let holds = |at: &usize| self.find_mismatch(*at, tier, arrival, &index.default_account).is_none();
        let of = |list: Option<&Vec<usize>>| list.and_then(|list| list.iter().copied().find(|at| holds(at)));
        match tier {
            BindingTier::Peer => of(index.peers.get(&arrival.peer.id)),
            BindingTier::ParentPeer => {
                of(arrival.parent.as_ref().and_then(|parent| index.peers.get(&parent.id)))
            }
            BindingTier::PeerWildcard => of(Some(&index.wildcards)),
            BindingTier::GuildRoles => {
                let guild = arrival.guild.as_ref()?;
                let of_role = |role: &String| of(index.roles.get(&(guild.clone(), role.clone())));
                arrival.roles.iter().filter_map(of_role).min()
            }
            BindingTier::Guild => of(arrival.guild.as_ref().and_then(|guild| index.guilds.get(guild))),
            BindingTier::Team => of(arrival.team.as_ref().and_then(|team| index.teams.get(team))),
            BindingTier::Account => of(index.accounts.get(&arrival.account)),
            BindingTier::Channel => of(Some(&index.rest)),
            BindingTier::Default => None,
        }
    }

    /// Returns why a binding does not match at a tier. `None` if it matches.
    fn find_mismatch(
        &self,
        at: usize,
        tier: BindingTier,
        arrival: &InboundContext,
        default_account: &str,
    ) -> Option<BindingMismatch> {
        let wanted = &self.bindings[at].match_rule;
        let account = wanted.account_id.as_deref().unwrap_or(default_account);
        let peer = match tier {
            BindingTier::ParentPeer => arrival.parent.as_ref(),
            _ => Some(&arrival.peer),
        };
        let named = |wanted: &Option<String>, given: &Option<String>| wanted.is_none() || wanted == given;
        match () {
            () if account != WILDCARD && account != arrival.account => Some(BindingMismatch::Account),
            () if !wanted
                .peer
                .as_ref()
                .is_none_or(|wanted| peer.is_some_and(|peer| peer_matches(wanted, peer))) =>
            {
                Some(BindingMismatch::Peer)
            }
            () if !named(&wanted.guild_id, &arrival.guild) => Some(BindingMismatch::Guild),
            () if !wanted.roles.is_empty()
                && !wanted.roles.iter().any(|role| arrival.roles.contains(role)) =>
            {
                Some(BindingMismatch::Roles)
            }
            () if !named(&wanted.team_id, &arrival.team) => Some(BindingMismatch::Team),
            () => None,
        }
    }
}

fn peer_matches(wanted: &ChatPeer, peer: &ChatPeer) -> bool {
    wanted.kind.is_like(peer.kind) && (wanted.id == WILDCARD || wanted.id == peer.id)
}

impl BindingMatch {
    /// Returns the tier of a binding, by its most specific condition. A peer binding also serves its threads, one tier
    /// below.
    pub fn binding_tier(&self) -> BindingTier {
        match (&self.peer, &self.guild_id, &self.team_id) {
            (Some(peer), ..) if peer.id == WILDCARD => BindingTier::PeerWildcard,
            (Some(_), ..) => BindingTier::Peer,
            (None, Some(_), _) if !self.roles.is_empty() => BindingTier::GuildRoles,
            (None, Some(_), _) => BindingTier::Guild,
            (None, None, Some(_)) => BindingTier::Team,
            _ if self.account_id.as_deref() == Some(WILDCARD) => BindingTier::Channel,
            _ => BindingTier::Account,
        }
    }
}

impl BindingIndex {
    fn add_binding(&mut self, at: usize, wanted: &BindingMatch) {
        let guild = || wanted.guild_id.clone().unwrap_or_default();
        match wanted.binding_tier() {
            BindingTier::Peer | BindingTier::ParentPeer => {
                let id = wanted.peer.as_ref().map(|peer| peer.id.clone()).unwrap_or_default();
                self.peers.entry(id).or_default().push(at);
            }
            BindingTier::PeerWildcard => self.wildcards.push(at),
            BindingTier::GuildRoles => {
                for role in &wanted.roles {
                    self.roles.entry((guild(), role.clone())).or_default().push(at);
                }
            }
            BindingTier::Guild => self.guilds.entry(guild()).or_default().push(at),
            BindingTier::Team => {
                self.teams.entry(wanted.team_id.clone().unwrap_or_default()).or_default().push(at);
            }
            BindingTier::Account => {
                let account = wanted.account_id.clone().unwrap_or_else(|| self.default_account.clone());
                self.accounts.entry(account).or_default().push(at);
            }
            BindingTier::Channel | BindingTier::Default => self.rest.push(at),
        }
    }
}
