//! Who answers: bindings in nine tiers. A pure function of what arrived, looked up in indexes, so that ten thousand
//! bindings cost what ten do.

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

/// Every one, of a kind of peer or of a channel's accounts.
pub const WILDCARD: &str = "*";

/// Sends what arrives in one place to one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// The agent that answers.
    pub agent_id: AgentId,
    /// What a message must be to come here. All that is said must hold.
    #[serde(rename = "match")]
    pub match_rule: BindingMatch,
    /// How conversations of single persons are kept apart here, instead of `session.dm_scope`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dm_scope: Option<DmScope>,
}

/// What a message must be. All that is said must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BindingMatch {
    /// The channel it came by, such as `telegram`.
    pub channel: String,
    /// The account it came to: the channel's default account if left out, every one if `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// The conversation it was written in. A thread also goes where its parent goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<ChatPeer>,
    /// The server it was written in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guild_id: Option<String>,
    /// Its writer is one of these in that server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// The workspace it was written in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team_id: Option<String>,
}

/// How closely a binding fits, the closest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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

/// Who answers, and by which binding. Without one the default agent does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteChoice<'a> {
    pub agent: &'a AgentId,
    pub tier: BindingTier,
    /// The place of the binding in the config.
    pub binding: Option<usize>,
    pub dm_scope: Option<DmScope>,
}

/// The bindings of an instance, by what each of them looks at first.
#[derive(Clone, Debug)]
pub struct Router {
    bindings: Vec<Binding>,
    default: AgentId,
    channels: HashMap<String, BindingIndex>,
}

/// The bindings of one channel. Every list is in the config's order.
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
    /// `default_account` says which account of a channel a binding means that names none.
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

    /// In the order of the config.
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// The closest binding, or the default agent. Among equals the first of the config.
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

    /// Why a binding does not hold at a tier. `None`: it does.
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
    /// The tier a binding belongs to, by the closest thing it names. A peer also serves its threads, one tier below.
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
