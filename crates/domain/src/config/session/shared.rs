//! The guard of private conversations: several people never share one by accident.

use std::collections::{BTreeSet, HashMap};

use super::Session;
use crate::admission::Access;
use crate::arrival::PeerKind;
use crate::config::channels::Channels;
use crate::config::report::Report;
use crate::route::{ANY, Binding};
use crate::scope::{DmScope, Links};

/// Whose direct messages end up in an agent's main conversation.
enum Sharers {
    /// These, by name or as `channel:id`.
    Known(BTreeSet<String>),
    /// Whoever writes to this account.
    Anybody { channel: &'static str, account: String },
}

impl Session {
    /// What `dm_scope` says, or what keeps people apart where it says nothing.
    pub fn scope(&self, channels: &Channels, bindings: &[Binding]) -> DmScope {
        let usual = || match self.sharers(DmScope::Main, channels, bindings) {
            Sharers::Known(people) if people.len() < 2 => DmScope::Main,
            _ if self.allow_shared_dm => DmScope::Main,
            _ => DmScope::PerChannelPeer,
        };
        self.dm_scope.unwrap_or_else(usual)
    }

    /// One conversation for all direct messages shows everybody what the others wrote.
    pub(in crate::config) fn check_shared(
        &self,
        channels: &Channels,
        bindings: &[Binding],
        report: &mut Report,
    ) {
        if self.allow_shared_dm
            || ["channels", "bindings", "session"].iter().any(|part| !report.is_sound(part))
        {
            return;
        }
        let scope = self.scope(channels, bindings);
        let who = match self.sharers(scope, channels, bindings) {
            Sharers::Known(people) if people.len() < 2 => return,
            Sharers::Known(people) => {
                people.iter().map(String::as_str).take(3).collect::<Vec<_>>().join(", ") + " and maybe others"
            }
            Sharers::Anybody { channel, account } => {
                format!("whoever is let in by {channel} account \"{account}\"")
            }
        };
        let message =
            format!("several people would share one conversation with an agent and read each other: {who}");
        let (path, hint) = shared_by(scope, bindings);
        report.error(&path, message, hint);
    }

    fn sharers(&self, scope: DmScope, channels: &Channels, bindings: &[Binding]) -> Sharers {
        let (links, defaults) = (Links::new(&self.identity_links), channels.default_accounts());
        let (mut people, rules) = (BTreeSet::new(), by_account(bindings));
        for (channel, account, access) in channels.access() {
            let is_default = defaults.get(channel) == Some(&account);
            let named =
                [Some(ANY), Some(account), None].into_iter().filter(|name| name.is_some() || is_default);
            let mut own: Vec<(usize, &Binding)> =
                named.flat_map(|name| rules.get(&(channel, name)).into_iter().flatten().copied()).collect();
            own.sort_unstable_by_key(|(at, _)| *at);
            let own: Vec<&Binding> = own.into_iter().map(|(_, binding)| binding).collect();
            let whole = own.iter().find(|binding| is_for_all(binding)).and_then(|binding| binding.dm_scope);
            let shared = match whole.unwrap_or(scope) {
                DmScope::Main => access.people(),
                _ => among(access, &own),
            };
            let Some(shared) = shared else {
                return Sharers::Anybody { channel, account: account.to_owned() };
            };
            people.extend(shared.into_iter().map(|id| links.person(channel, id)));
        }
        Sharers::Known(people)
    }
}

/// The setting by which they share it, and what to write instead.
fn shared_by(scope: DmScope, bindings: &[Binding]) -> (String, &'static str) {
    let at = bindings.iter().position(|binding| binding.dm_scope == Some(DmScope::Main));
    match at.filter(|_| scope != DmScope::Main) {
        Some(at) => (
            format!("bindings[{at}].dm_scope"),
            "take dm_scope = \"main\" out of the binding, or write allow_shared_dm = true under [session] if they may",
        ),
        None => (
            "session.dm_scope".to_owned(),
            "write dm_scope = \"per-channel-peer\" under [session], or allow_shared_dm = true if they may",
        ),
    }
}

/// Those whom single bindings put into the main conversation, where the account as a whole is not.
fn among<'a>(access: &Access, bindings: &[&'a Binding]) -> Option<Vec<&'a str>> {
    let sharing = bindings.iter().filter(|binding| binding.dm_scope == Some(DmScope::Main));
    let is_closed = access.people().is_some_and(|people| people.is_empty());
    let peer = |binding: &&'a Binding| match &binding.wanted.peer {
        Some(peer) if peer.kind != PeerKind::Dm => None,
        Some(peer) if peer.id != ANY => Some(Some(peer.id.as_str())),
        _ => Some(None),
    };
    if is_closed { Some(Vec::new()) } else { sharing.filter_map(peer).collect() }
}

type ByAccount<'a> = HashMap<(&'a str, Option<&'a str>), Vec<(usize, &'a Binding)>>;

/// The bindings with their places, by the channel and the account they name; without one they mean the default account.
fn by_account(bindings: &[Binding]) -> ByAccount<'_> {
    let mut found = ByAccount::new();
    for (at, binding) in bindings.iter().enumerate() {
        let wanted = &binding.wanted;
        found.entry((&*wanted.channel, wanted.account_id.as_deref())).or_default().push((at, binding));
    }
    found
}

/// It takes every direct message of its account.
fn is_for_all(binding: &Binding) -> bool {
    let wanted = &binding.wanted;
    let every = wanted.peer.as_ref().is_none_or(|peer| peer.kind == PeerKind::Dm && peer.id == ANY);
    every && wanted.guild_id.is_none() && wanted.team_id.is_none()
}
