//! Prevents several people from sharing a private conversation by accident.

use std::collections::{BTreeSet, HashMap};

use super::SessionConfig;
use crate::admission::AccountAccess;
use crate::config::channels::ChannelsConfig;
use crate::config::report::ConfigReport;
use crate::inbound::PeerKind;
use crate::route::{Binding, WILDCARD};
use crate::scope::{DmScope, IdentityLinks};

/// The people whose direct messages go to an agent's main conversation.
enum DmSharers {
    /// These people, by name or as `channel:id`.
    Known(BTreeSet<String>),
    /// Anybody who writes to this account.
    Anybody { channel: &'static str, account: String },
}

impl SessionConfig {
    /// Returns the configured `dm_scope`. Without one, returns a scope that keeps people apart.
    pub fn effective_dm_scope(&self, channels: &ChannelsConfig, bindings: &[Binding]) -> DmScope {
        let usual = || match self.find_sharers(DmScope::Main, channels, bindings) {
            DmSharers::Known(people) if people.len() < 2 => DmScope::Main,
            _ if self.allow_shared_dm => DmScope::Main,
            _ => DmScope::PerChannelPeer,
        };
        self.dm_scope.unwrap_or_else(usual)
    }

    /// Reports a shared conversation for direct messages, in which everybody sees what the others write.
    pub(in crate::config) fn check_shared_dms(
        &self,
        channels: &ChannelsConfig,
        bindings: &[Binding],
        report: &mut ConfigReport,
    ) {
        if self.allow_shared_dm
            || ["channels", "bindings", "session"].iter().any(|part| !report.is_section_sound(part))
        {
            return;
        }
        let scope = self.effective_dm_scope(channels, bindings);
        let who = match self.find_sharers(scope, channels, bindings) {
            DmSharers::Known(people) if people.len() < 2 => return,
            DmSharers::Known(people) => {
                people.iter().map(String::as_str).take(3).collect::<Vec<_>>().join(", ")
                    + " and possibly others"
            }
            DmSharers::Anybody { channel, account } => {
                format!("everybody admitted by {channel} account \"{account}\"")
            }
        };
        let message = format!(
            "several people would share one conversation with an agent and see each other's messages: {who}"
        );
        let (path, hint) = sharing_setting(scope, bindings);
        report.add_error(&path, message, hint);
    }

    fn find_sharers(&self, scope: DmScope, channels: &ChannelsConfig, bindings: &[Binding]) -> DmSharers {
        let (links, defaults) = (IdentityLinks::new(&self.identity_links), channels.default_accounts());
        let (mut people, rules) = (BTreeSet::new(), by_account(bindings));
        for (channel, account, access) in channels.account_accesses() {
            let is_default = defaults.get(channel) == Some(&account);
            let named =
                [Some(WILDCARD), Some(account), None].into_iter().filter(|name| name.is_some() || is_default);
            let mut own: Vec<(usize, &Binding)> =
                named.flat_map(|name| rules.get(&(channel, name)).into_iter().flatten().copied()).collect();
            own.sort_unstable_by_key(|(at, _)| *at);
            let own: Vec<&Binding> = own.into_iter().map(|(_, binding)| binding).collect();
            let whole =
                own.iter().find(|binding| takes_every_dm(binding)).and_then(|binding| binding.dm_scope);
            let shared = match whole.unwrap_or(scope) {
                DmScope::Main => access.known_dm_senders(),
                _ => binding_sharers(access, &own),
            };
            let Some(shared) = shared else {
                return DmSharers::Anybody { channel, account: account.to_owned() };
            };
            people.extend(shared.into_iter().map(|id| links.person_key(channel, id)));
        }
        DmSharers::Known(people)
    }
}

/// Returns the setting that causes the sharing, and what to write instead.
fn sharing_setting(scope: DmScope, bindings: &[Binding]) -> (String, &'static str) {
    let at = bindings.iter().position(|binding| binding.dm_scope == Some(DmScope::Main));
    match at.filter(|_| scope != DmScope::Main) {
        Some(at) => (
            format!("bindings[{at}].dm_scope"),
            "remove dm_scope = \"main\" from the binding, or set allow_shared_dm = true under [session] to allow \
             this",
        ),
        None => (
            "session.dm_scope".to_owned(),
            "set dm_scope = \"per-channel-peer\" under [session], or allow_shared_dm = true to allow this",
        ),
    }
}

/// Returns the senders whom single bindings route to the main conversation, if the account as a whole does not.
fn binding_sharers<'a>(access: &AccountAccess, bindings: &[&'a Binding]) -> Option<Vec<&'a str>> {
    let sharing = bindings.iter().filter(|binding| binding.dm_scope == Some(DmScope::Main));
    let is_closed = access.known_dm_senders().is_some_and(|people| people.is_empty());
    let peer = |binding: &&'a Binding| match &binding.match_rule.peer {
        Some(peer) if peer.kind != PeerKind::Dm => None,
        Some(peer) if peer.id != WILDCARD => Some(Some(peer.id.as_str())),
        _ => Some(None),
    };
    if is_closed { Some(Vec::new()) } else { sharing.filter_map(peer).collect() }
}

type ByAccount<'a> = HashMap<(&'a str, Option<&'a str>), Vec<(usize, &'a Binding)>>;

/// Groups the bindings with their indexes by channel and account; without an account they mean the default account.
fn by_account(bindings: &[Binding]) -> ByAccount<'_> {
    let mut found = ByAccount::new();
    for (at, binding) in bindings.iter().enumerate() {
        let wanted = &binding.match_rule;
        found.entry((&*wanted.channel, wanted.account_id.as_deref())).or_default().push((at, binding));
    }
    found
}

/// Returns whether a binding matches every direct message of its account.
fn takes_every_dm(binding: &Binding) -> bool {
    let wanted = &binding.match_rule;
    let every = wanted.peer.as_ref().is_none_or(|peer| peer.kind == PeerKind::Dm && peer.id == WILDCARD);
    every && wanted.guild_id.is_none() && wanted.team_id.is_none()
}
