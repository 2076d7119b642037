//! Config rules for inbound messages: who may write, which agent answers, and in which session. Replaced on reload;
//! messages in progress keep the rules they started with.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use polyclaw_domain::admission::AccountAccess;
use polyclaw_domain::authority::Authority;
use polyclaw_domain::channel::{ChatAddress, PULL_CHANNELS, WEBHOOK_CHANNEL};
use polyclaw_domain::command::CallerRole;
use polyclaw_domain::config::{
    BroadcastConfig, BroadcastStrategy, Config, DEFAULT_ACCOUNT, DeliverTo, IntentClassifierConfig,
};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::inbound::{InboundContext, PeerKind};
use polyclaw_domain::route::{Binding, RouteChoice, Router};
use polyclaw_domain::scope::{DmScope, IdentityLinks, SessionScope};
use polyclaw_domain::session_key::SessionKey;

#[derive(Clone, Debug)]
pub struct InboundRules {
    /// Access rules by channel and account.
    access: HashMap<(String, String), AccountAccess>,
    pub(super) router: Router,
    broadcast: BroadcastConfig,
    dm_scope: DmScope,
    main_key: String,
    /// Whether several people may share an agent's main session.
    allows_shared_dm: bool,
    links: IdentityLinks,
    default_accounts: BTreeMap<String, String>,
    /// Names of the webhooks.
    webhooks: BTreeSet<String>,
    pub(super) classifier: IntentClassifierConfig,
}

impl InboundRules {
    pub fn from_config(config: &Config) -> Self {
        let access = config.channels.account_accesses();
        let named = config.channels.default_accounts();
        let default_accounts: BTreeMap<String, String> =
            named.into_iter().map(|(channel, account)| (channel.to_owned(), account.to_owned())).collect();
        let default = |channel: &str| default_account(&default_accounts, channel).to_owned();
        Self {
            access: access
                .map(|(channel, account, access)| ((channel.to_owned(), account.to_owned()), access.clone()))
                .collect(),
            router: Router::new(config.bindings.clone(), config.agents.default_agent_id(), default),
            broadcast: config.broadcast.clone(),
            dm_scope: config.session.effective_dm_scope(&config.channels, &config.bindings),
            main_key: config.session.main_key.clone(),
            allows_shared_dm: config.session.allow_shared_dm,
            links: IdentityLinks::new(&config.session.identity_links),
            classifier: config.routing.intent_classifier.clone(),
            webhooks: config.channels.webhook.keys().cloned().collect(),
            default_accounts,
        }
    }

    /// Resolves a configured address. `None`: there is no such account.
    pub fn resolve_address(&self, to: &DeliverTo) -> Option<ChatAddress> {
        let usual = self.default_accounts.get(&to.channel).map_or("", String::as_str);
        let address = to.address_with_default(usual);
        let is_hook = address.channel == WEBHOOK_CHANNEL && self.webhooks.contains(&address.account);
        let account = (address.channel.clone(), address.account.clone());
        (is_hook || self.access.contains_key(&account)).then_some(address)
    }

    /// Bindings in config order.
    pub fn bindings(&self) -> &[Binding] {
        self.router.bindings()
    }

    /// The account of a channel that is used if none is named.
    pub fn default_account(&self, channel: &str) -> &str {
        default_account(&self.default_accounts, channel)
    }

    pub(super) fn account_access(&self, arrival: &InboundContext) -> Option<&AccountAccess> {
        self.access.get(&(arrival.channel.clone(), arrival.account.clone()))
    }

    /// All enabled accounts, as channel and account name.
    pub(super) fn enabled_accounts(&self) -> Vec<(String, String)> {
        self.access.iter().filter(|(_, access)| access.enabled).map(|(account, _)| account.clone()).collect()
    }

    /// Owners of all enabled accounts, by platform id.
    pub(crate) fn account_owners(&self) -> Vec<(String, String, Vec<String>)> {
        let used = self.access.iter().filter(|(_, access)| access.enabled && !access.owners.is_empty());
        let mut found: Vec<_> = used
            .map(|((channel, account), access)| (channel.clone(), account.clone(), access.owners.clone()))
            .collect();
        found.sort();
        found
    }

    pub(super) fn sender_authority(&self, arrival: &InboundContext) -> Authority {
        match self.caller_role(arrival) {
            CallerRole::Owner => Authority::Owner,
            CallerRole::Alone | CallerRole::AmongOthers => Authority::NonOwner,
        }
    }

    pub(super) fn caller_role(&self, arrival: &InboundContext) -> CallerRole {
        let owns = |access: &AccountAccess| access.owners.contains(&arrival.sender);
        match arrival.peer.kind {
            _ if self.account_access(arrival).is_some_and(owns) => CallerRole::Owner,
            PeerKind::Dm => CallerRole::Alone,
            PeerKind::Group | PeerKind::Channel => CallerRole::AmongOthers,
        }
    }

    /// Agents that all answer this conversation. A thread uses the rule of its parent.
    pub(super) fn broadcast_agents(&self, arrival: &InboundContext) -> Option<&[AgentId]> {
        let places = [Some(&arrival.peer), arrival.parent.as_ref()];
        places
            .into_iter()
            .flatten()
            .find_map(|place| self.broadcast_agents_by_peer(&arrival.channel, &place.id))
    }

    /// Agents that all answer this conversation, by its id alone.
    pub(super) fn broadcast_agents_by_peer(&self, channel: &str, peer: &str) -> Option<&[AgentId]> {
        let peers = &self.broadcast.peers;
        // People write phone numbers with a plus; WhatsApp ids have none.
        let number = || peers.get(&format!("+{peer}")).filter(|_| channel == "whatsapp");
        peers.get(peer).or_else(number).map(Vec::as_slice)
    }

    pub(super) fn is_sequential(&self) -> bool {
        self.broadcast.strategy == BroadcastStrategy::Sequential
    }

    pub(super) fn sees_previous(&self) -> bool {
        self.broadcast.see_previous
    }

    /// The session of an agent with its owner.
    pub fn main_session(&self, agent: &AgentId) -> SessionKey {
        SessionKey::from_parts(agent, &[&self.main_key])
    }

    /// Whether several people may write to this session from their own chats.
    pub(super) fn is_shared_session(&self, session: &SessionKey) -> bool {
        let main = session.agent_id().map(|agent| self.main_session(&agent));
        self.allows_shared_dm && main.as_ref() == Some(session)
    }

    /// The session of an agent with this sender, scoped by the binding or else by the config.
    pub(super) fn session_key(
        &self,
        agent: &AgentId,
        arrival: &InboundContext,
        choice: RouteChoice<'_>,
    ) -> SessionKey {
        if PULL_CHANNELS.contains(&arrival.channel.as_str()) {
            return self.main_session(agent);
        }
        let scope = SessionScope {
            dm: choice.dm_scope.unwrap_or(self.dm_scope),
            main_key: &self.main_key,
            links: Some(&self.links),
            default_account: self.default_account(&arrival.channel),
        };
        scope.session_key(agent, arrival)
    }
}

fn default_account<'a>(named: &'a BTreeMap<String, String>, channel: &str) -> &'a str {
    named.get(channel).map_or(DEFAULT_ACCOUNT, String::as_str)
}
