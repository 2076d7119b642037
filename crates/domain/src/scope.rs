//! Session scope: which session a message belongs to. Two people share one only if the config says so.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::AgentId;
use crate::inbound::{InboundContext, PeerKind};
use crate::session_key::SessionKey;

/// How direct conversations are separated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DmScope {
    /// All direct conversations are one: the agent's main session.
    #[default]
    Main,
    /// One per person, on whichever channel they write.
    PerPeer,
    /// One per person and channel.
    PerChannelPeer,
    /// One per person, channel and account.
    PerAccountChannelPeer,
}

/// What determines a session key besides the message.
#[derive(Clone, Debug, Default)]
pub struct SessionScope<'a> {
    pub dm: DmScope,
    pub main_key: &'a str,
    /// The linked ids of people.
    pub links: Option<&'a IdentityLinks>,
    /// The default account of the channel. Its groups need no account in their key.
    pub default_account: &'a str,
}

/// Maps ids on several channels, written `channel:id`, to the name of one person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentityLinks(BTreeMap<String, String>);

impl IdentityLinks {
    /// Builds the map from names to ids of the config.
    pub fn new<'a>(named: impl IntoIterator<Item = (&'a String, &'a Vec<String>)>) -> Self {
        let pairs = named.into_iter().flat_map(|(name, ids)| ids.iter().map(|id| (id.clone(), name.clone())));
        Self(pairs.collect())
    }

    /// Returns the name of a person, else `channel:id`.
    pub fn person_key(&self, channel: &str, id: &str) -> String {
        self.name(channel, id).map_or_else(|| format!("{channel}:{id}"), str::to_owned)
    }

    fn name(&self, channel: &str, id: &str) -> Option<&str> {
        self.0.get(&format!("{channel}:{id}")).map(String::as_str)
    }
}

impl SessionScope<'_> {
    pub fn session_key(&self, agent: &AgentId, arrival: &InboundContext) -> SessionKey {
        let InboundContext { channel, account, peer, .. } = arrival;
        let mut parts: Vec<String> = match (peer.kind, self.dm) {
            (PeerKind::Dm, DmScope::Main) => vec![self.main_key.to_owned()],
            (PeerKind::Dm, DmScope::PerPeer) => self.person_parts(channel, &peer.id),
            (PeerKind::Dm, DmScope::PerChannelPeer) => {
                self.channel_person_parts(channel, &[channel], &peer.id)
            }
            (PeerKind::Dm, DmScope::PerAccountChannelPeer) => {
                self.channel_person_parts(channel, &[channel, account], &peer.id)
            }
            (kind, _) if account == self.default_account => {
                to_owned_parts(&[channel, kind.as_str(), &peer.id])
            }
            (kind, _) => to_owned_parts(&[channel, account, kind.as_str(), &peer.id]),
        };
        if let Some(thread) = &arrival.thread {
            parts.extend(to_owned_parts(&[thread.kind.as_str(), &thread.id]));
        }
        SessionKey::from_parts(agent, &parts.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Returns the key parts of a person on any channel. An id includes its channel, because equal ids of two platforms
    /// need not be one person. A name contains no `:`, so it is never taken for an id.
    fn person_parts(&self, channel: &str, id: &str) -> Vec<String> {
        let who = self.links.map_or_else(|| format!("{channel}:{id}"), |links| links.person_key(channel, id));
        vec!["dm".to_owned(), who]
    }

    /// Returns the key parts of a person on one channel. Names and ids have different markers, because an id could look
    /// like a name.
    fn channel_person_parts(&self, channel: &str, place: &[&str], id: &str) -> Vec<String> {
        let who = match self.linked_name(channel, id) {
            Some(name) => ["person", name],
            None => ["dm", id],
        };
        to_owned_parts(&[place, &who].concat())
    }

    fn linked_name(&self, channel: &str, id: &str) -> Option<&str> {
        self.links?.name(channel, id)
    }
}

fn to_owned_parts(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| (*part).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::inbound::{ChatPeer, ChatThread, ThreadKind};

    fn arrival(channel: &str, account: &str, kind: PeerKind, id: &str) -> InboundContext {
        InboundContext {
            channel: channel.into(),
            account: account.into(),
            peer: ChatPeer { kind, id: id.into() },
            parent: None,
            thread: None,
            guild: None,
            team: None,
            roles: vec![],
            sender: id.into(),
        }
    }

    fn scope(dm: DmScope) -> SessionScope<'static> {
        SessionScope { dm, main_key: "main", links: None, default_account: "default" }
    }

    fn key(scope: &SessionScope<'_>, arrival: &InboundContext) -> String {
        scope.session_key(&AgentId::main(), arrival).to_string()
    }

    /// Direct messages in four scopes; groups and channels of two accounts, each alone, in a thread and in a topic.
    #[test]
    fn session_keys_for_every_peer_kind_and_dm_scope() {
        let scopes =
            [DmScope::Main, DmScope::PerPeer, DmScope::PerChannelPeer, DmScope::PerAccountChannelPeer];
        let places: [(PeerKind, &str, [&str; 4]); 6] = [
            (PeerKind::Dm, "default", ["main", "dm:telegram%3aX", "telegram:dm:X", "telegram:default:dm:X"]),
            (PeerKind::Dm, "biz", ["main", "dm:telegram%3aX", "telegram:dm:X", "telegram:biz:dm:X"]),
            (PeerKind::Group, "default", ["telegram:group:X"; 4]),
            (PeerKind::Group, "biz", ["telegram:biz:group:X"; 4]),
            (PeerKind::Channel, "default", ["telegram:channel:X"; 4]),
            (PeerKind::Channel, "biz", ["telegram:biz:channel:X"; 4]),
        ];
        let sides =
            [(None, ""), (Some(ThreadKind::Thread), ":thread:1.2"), (Some(ThreadKind::Topic), ":topic:1.2")];
        for (kind, account, expected) in places {
            for (of, place) in scopes.into_iter().zip(expected) {
                for (side, suffix) in sides {
                    let thread = side.map(|kind| ChatThread { kind, id: "1.2".into() });
                    let arrival = InboundContext { thread, ..arrival("telegram", account, kind, "-5") };
                    let expected = format!("agent:main:{}{suffix}", place.replace('X', "-5"));
                    assert_eq!(key(&scope(of), &arrival), expected, "{of:?}");
                    assert_eq!(SessionKey::parse(&expected).map(|key| key.to_string()), Ok(expected));
                }
            }
        }
    }

    #[test]
    fn identity_links_join_only_linked_senders() {
        let named =
            BTreeMap::from([("alice".to_owned(), vec!["telegram:1".to_owned(), "discord:2".to_owned()])]);
        let links = IdentityLinks::new(&named);
        for of in [DmScope::PerPeer, DmScope::PerChannelPeer, DmScope::PerAccountChannelPeer] {
            let scope = SessionScope { links: Some(&links), ..scope(of) };
            let at = |channel, id| key(&scope, &arrival(channel, "default", PeerKind::Dm, id));
            assert_eq!(of == DmScope::PerPeer, at("telegram", "1") == at("discord", "2"));
            assert_ne!(at("telegram", "1"), at("telegram", "alice"), "an id that reads like the name");
            assert_ne!(at("telegram", "2"), at("discord", "2"), "one id on two platforms");
        }
    }

    fn anywhere() -> impl Strategy<Value = InboundContext> {
        let word = prop_oneof![
            "[a-c:%*]{0,3}",
            Just("dm".to_owned()),
            Just("main".to_owned()),
            Just("group".into())
        ];
        let kind = prop_oneof![Just(PeerKind::Dm), Just(PeerKind::Group), Just(PeerKind::Channel)];
        let thread = prop::option::of((any::<bool>(), "[a:]{0,2}"));
        (word.clone(), word.clone(), word, kind, thread).prop_map(|(channel, account, id, kind, thread)| {
            let thread = thread.map(|(topic, id)| ChatThread {
                kind: if topic { ThreadKind::Topic } else { ThreadKind::Thread },
                id,
            });
            InboundContext { thread, ..arrival(&channel, &account, kind, &id) }
        })
    }

    /// What identifies a conversation, expressed without any key.
    fn conversation(of: DmScope, links: &IdentityLinks, x: &InboundContext) -> Vec<Option<String>> {
        let some = |text: &str| Some(text.to_owned());
        let thread = x.thread.as_ref().map(|thread| format!("{:?}", (thread.kind, &thread.id)));
        let person = links.person_key(&x.channel, &x.peer.id);
        let place = match (x.peer.kind, of) {
            (PeerKind::Dm, DmScope::Main) => vec![some("main")],
            (PeerKind::Dm, DmScope::PerPeer) => vec![some("person"), Some(person)],
            (PeerKind::Dm, DmScope::PerChannelPeer) => vec![some("here"), some(&x.channel), Some(person)],
            (PeerKind::Dm, DmScope::PerAccountChannelPeer) => {
                vec![some("account"), some(&x.channel), some(&x.account), Some(person)]
            }
            (kind, _) => vec![some(kind.as_str()), some(&x.channel), some(&x.account), some(&x.peer.id)],
        };
        place.into_iter().chain([thread]).collect()
    }

    fn any_scope() -> impl Strategy<Value = DmScope> {
        prop_oneof![
            Just(DmScope::Main),
            Just(DmScope::PerPeer),
            Just(DmScope::PerChannelPeer),
            Just(DmScope::PerAccountChannelPeer)
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        /// Two messages share a key exactly if they are of one conversation, even if bindings separate them in
        /// different scopes, and whatever platforms, accounts and people are called.
        #[test]
        fn no_two_conversations_share_a_key(
            a in anywhere(), b in anywhere(), of_a in any_scope(), of_b in any_scope(), same in any::<bool>(),
        ) {
            let named = BTreeMap::from([("a".to_owned(), vec!["dm:b".to_owned(), "a:c".to_owned()])]);
            let links = IdentityLinks::new(&named);
            let b = if same { InboundContext { channel: a.channel.clone(), peer: a.peer.clone(), ..b } } else { b };
            let key = |of, x: &InboundContext| key(&SessionScope { links: Some(&links), ..scope(of) }, x);
            prop_assert_eq!(
                key(of_a, &a) == key(of_b, &b),
                conversation(of_a, &links, &a) == conversation(of_b, &links, &b)
            );
        }
    }
}
