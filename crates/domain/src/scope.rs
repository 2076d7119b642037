//! Which conversation a message belongs to. Two people share one only where the config says so.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrival::{Arrival, PeerKind};
use crate::id::AgentId;
use crate::key::SessionKey;

/// How conversations with single persons are kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DmScope {
    /// All of them are one conversation, the agent's main one.
    #[default]
    Main,
    /// One for each person, whatever they write by.
    PerPeer,
    /// One for each person and channel.
    PerChannelPeer,
    /// One for each person, channel and account.
    PerAccountChannelPeer,
}

/// What decides a session's key beside the message.
#[derive(Clone, Debug, Default)]
pub struct Scope<'a> {
    pub dm: DmScope,
    pub main_key: &'a str,
    /// A person's name, and their ids as `channel:id`.
    pub links: Option<&'a Links>,
    /// The account of this channel that is meant where none is named: its groups need no account in their key.
    pub default_account: &'a str,
}

/// Who is the same person on several channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links(BTreeMap<String, String>);

impl Links {
    /// From names to ids, as the config has them.
    pub fn new<'a>(named: impl IntoIterator<Item = (&'a String, &'a Vec<String>)>) -> Self {
        let pairs = named.into_iter().flat_map(|(name, ids)| ids.iter().map(|id| (id.clone(), name.clone())));
        Self(pairs.collect())
    }

    /// The name of a person, or else where their id is from and the id.
    pub fn person(&self, channel: &str, id: &str) -> String {
        self.name(channel, id).map_or_else(|| format!("{channel}:{id}"), str::to_owned)
    }

    fn name(&self, channel: &str, id: &str) -> Option<&str> {
        self.0.get(&format!("{channel}:{id}")).map(String::as_str)
    }
}

impl Scope<'_> {
    pub fn key(&self, agent: &AgentId, arrival: &Arrival) -> SessionKey {
        let Arrival { channel, account, peer, .. } = arrival;
        let mut parts: Vec<String> = match (peer.kind, self.dm) {
            (PeerKind::Dm, DmScope::Main) => vec![self.main_key.to_owned()],
            (PeerKind::Dm, DmScope::PerPeer) => self.anywhere(channel, &peer.id),
            (PeerKind::Dm, DmScope::PerChannelPeer) => self.within(channel, &[channel], &peer.id),
            (PeerKind::Dm, DmScope::PerAccountChannelPeer) => {
                self.within(channel, &[channel, account], &peer.id)
            }
            (kind, _) if account == self.default_account => owned(&[channel, kind.as_str(), &peer.id]),
            (kind, _) => owned(&[channel, account, kind.as_str(), &peer.id]),
        };
        if let Some(thread) = &arrival.thread {
            parts.extend(owned(&[thread.kind.as_str(), &thread.id]));
        }
        SessionKey::of(agent, &parts.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// One key for a person wherever they write. Ids of two platforms can be equal without being one person's, so
    /// an id goes with its channel; a name holds no `:`, so it is never taken for one.
    fn anywhere(&self, channel: &str, id: &str) -> Vec<String> {
        let who = self.links.map_or_else(|| format!("{channel}:{id}"), |links| links.person(channel, id));
        vec!["dm".to_owned(), who]
    }

    /// One key for a person below a channel. A name has a word of its own: an id could read like it.
    fn within(&self, channel: &str, place: &[&str], id: &str) -> Vec<String> {
        let who = match self.linked(channel, id) {
            Some(name) => ["person", name],
            None => ["dm", id],
        };
        owned(&[place, &who].concat())
    }

    fn linked(&self, channel: &str, id: &str) -> Option<&str> {
        self.links?.name(channel, id)
    }
}

fn owned(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| (*part).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arrival::{Peer, Thread, ThreadKind};

    fn arrival(channel: &str, account: &str, kind: PeerKind, id: &str) -> Arrival {
        Arrival {
            channel: channel.into(),
            account: account.into(),
            peer: Peer { kind, id: id.into() },
            parent: None,
            thread: None,
            guild: None,
            team: None,
            roles: vec![],
            sender: id.into(),
        }
    }

    fn scope(dm: DmScope) -> Scope<'static> {
        Scope { dm, main_key: "main", links: None, default_account: "default" }
    }

    fn key(scope: &Scope<'_>, arrival: &Arrival) -> String {
        scope.key(&AgentId::main(), arrival).to_string()
    }

    #[test]
    fn every_shape_in_every_scope() {
        let dm = arrival("telegram", "default", PeerKind::Dm, "123");
        for (of, expected) in [
            (DmScope::Main, "agent:main:main"),
            (DmScope::PerPeer, "agent:main:dm:telegram%3a123"),
            (DmScope::PerChannelPeer, "agent:main:telegram:dm:123"),
            (DmScope::PerAccountChannelPeer, "agent:main:telegram:default:dm:123"),
        ] {
            assert_eq!(key(&scope(of), &dm), expected);
            let topic =
                Arrival { thread: Some(Thread { kind: ThreadKind::Topic, id: "7".into() }), ..dm.clone() };
            assert_eq!(key(&scope(of), &topic), format!("{expected}:topic:7"));
            let group = arrival("telegram", "default", PeerKind::Group, "-5");
            assert_eq!(key(&scope(of), &group), "agent:main:telegram:group:-5");
            let other = arrival("telegram", "biz", PeerKind::Group, "-5");
            assert_eq!(key(&scope(of), &other), "agent:main:telegram:biz:group:-5");
            let thread = Some(Thread { kind: ThreadKind::Thread, id: "1.2".into() });
            let channel = Arrival { thread, ..arrival("slack", "default", PeerKind::Channel, "c1") };
            assert_eq!(key(&scope(of), &channel), "agent:main:slack:channel:c1:thread:1.2");
        }
    }

    #[test]
    fn a_linked_person_is_one_and_nobody_else_is_them() {
        let named =
            BTreeMap::from([("alice".to_owned(), vec!["telegram:1".to_owned(), "discord:2".to_owned()])]);
        let links = Links::new(&named);
        for of in [DmScope::PerPeer, DmScope::PerChannelPeer, DmScope::PerAccountChannelPeer] {
            let scope = Scope { links: Some(&links), ..scope(of) };
            let at = |channel, id| key(&scope, &arrival(channel, "default", PeerKind::Dm, id));
            assert_eq!(of == DmScope::PerPeer, at("telegram", "1") == at("discord", "2"));
            assert_ne!(at("telegram", "1"), at("telegram", "alice"), "an id that reads like the name");
            assert_ne!(at("telegram", "2"), at("discord", "2"), "one id on two platforms");
        }
    }

    fn anywhere() -> impl Strategy<Value = Arrival> {
        let word = prop_oneof![
            "[a-c:%*]{0,3}",
            Just("dm".to_owned()),
            Just("main".to_owned()),
            Just("group".into())
        ];
        let kind = prop_oneof![Just(PeerKind::Dm), Just(PeerKind::Group), Just(PeerKind::Channel)];
        let thread = prop::option::of((any::<bool>(), "[a:]{0,2}"));
        (word.clone(), word.clone(), word, kind, thread).prop_map(|(channel, account, id, kind, thread)| {
            let thread = thread.map(|(topic, id)| Thread {
                kind: if topic { ThreadKind::Topic } else { ThreadKind::Thread },
                id,
            });
            Arrival { thread, ..arrival(&channel, &account, kind, &id) }
        })
    }

    proptest! {
        /// In the closest scope a key says everything: whoever differs has another.
        #[test]
        fn different_conversations_have_different_keys(a in anywhere(), b in anywhere()) {
            let scope = scope(DmScope::PerAccountChannelPeer);
            let place = |x: &Arrival| (x.channel.clone(), x.account.clone(), x.peer.clone(), x.thread.clone());
            prop_assert_eq!(key(&scope, &a) == key(&scope, &b), place(&a) == place(&b));
        }
    }
}
