//! The authority of the people for whom a turn works. It is stored with each message and passed on with everything done
//! for them, so that neither a crash nor a detour through other agents raises it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::message::MessageOrigin;

/// The field in a message's metadata.
const AUTHORITY_FIELD: &str = "authority";

/// Prefix of an authority mark in a list of senders. No `channel:account:peer` starts with it.
const AUTHORITY_MARK_PREFIX: &str = "authority:";

/// Ordered from the lowest to the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Authority {
    /// An admitted sender on a channel, a webhook's peer, or an agent of another instance.
    #[serde(alias = "guest")]
    NonOwner,
    /// Holder of a control-plane token with less than `admin` access.
    Operator,
    /// Holder of the instance's token, or an owner of an account.
    Owner,
}

impl Authority {
    const ALL: [Self; 3] = [Self::NonOwner, Self::Operator, Self::Owner];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::NonOwner => "non_owner",
            Self::Operator => "operator",
            Self::Owner => "owner",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        // Rows of earlier versions say "guest".
        let text = if text == "guest" { Self::NonOwner.as_str() } else { text };
        Self::ALL.into_iter().find(|one| one.as_str() == text)
    }

    /// Writes it into the metadata of a message.
    pub fn write_to_meta(self, meta: &mut Option<Value>) {
        let meta = meta.get_or_insert_with(|| json!({}));
        meta[AUTHORITY_FIELD] = json!(self.as_str());
    }

    /// Returns the authority of a message's author. `None` for an internal message, which carries the marks of its
    /// senders. A channel message without the field is from an earlier version and gets no authority.
    pub fn from_message(origin: &MessageOrigin, meta: Option<&Value>, is_local: bool) -> Option<Self> {
        let stated = meta.and_then(|meta| meta[AUTHORITY_FIELD].as_str()).and_then(Self::parse);
        match origin {
            MessageOrigin::User | MessageOrigin::Hook => {
                stated.or(Some(if is_local { Self::Owner } else { Self::NonOwner }))
            }
            MessageOrigin::Remote { .. } => Some(Self::NonOwner),
            MessageOrigin::Agent(_) | MessageOrigin::Cron | MessageOrigin::System => stated,
        }
    }

    /// Returns the mark that is stored among senders. An owner needs none, because nothing is restricted.
    pub fn sender_mark(self) -> Option<String> {
        (self != Self::Owner).then(|| format!("{AUTHORITY_MARK_PREFIX}{}", self.as_str()))
    }

    /// Returns the lowest authority among the senders. An unknown mark counts as the lowest.
    pub fn lowest_of_senders(senders: &[String]) -> Self {
        let marks = senders.iter().filter_map(|sender| sender.strip_prefix(AUTHORITY_MARK_PREFIX));
        marks.map(|word| Self::parse(word).unwrap_or(Self::NonOwner)).min().unwrap_or(Self::Owner)
    }

    /// Returns the senders without the marks, for display.
    pub fn without_marks(senders: &[String]) -> impl Iterator<Item = &str> {
        senders.iter().map(String::as_str).filter(|sender| !sender.starts_with(AUTHORITY_MARK_PREFIX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::AgentId;

    #[test]
    fn lowest_authority_wins_and_unknown_is_non_owner() {
        let of = |marks: &[&str]| {
            Authority::lowest_of_senders(&marks.iter().map(|mark| (*mark).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(of(&[]), Authority::Owner);
        assert_eq!(of(&["telegram:main:7"]), Authority::Owner);
        assert_eq!(of(&["authority:operator", "web:default:x"]), Authority::Operator);
        assert_eq!(of(&["authority:operator", "authority:guest"]), Authority::NonOwner);
        assert_eq!(of(&["authority:emperor"]), Authority::NonOwner);
        for one in Authority::ALL {
            assert_eq!(of(&one.sender_mark().iter().map(String::as_str).collect::<Vec<_>>()), one);
        }
    }

    #[test]
    fn channel_message_without_authority_is_non_owner() {
        let mut meta = None;
        Authority::Owner.write_to_meta(&mut meta);
        let of = |origin: &MessageOrigin, meta: Option<&Value>, is_local| {
            Authority::from_message(origin, meta, is_local)
        };
        assert_eq!(of(&MessageOrigin::User, meta.as_ref(), false), Some(Authority::Owner));
        assert_eq!(of(&MessageOrigin::User, None, false), Some(Authority::NonOwner));
        assert_eq!(of(&MessageOrigin::User, None, true), Some(Authority::Owner));
        assert_eq!(of(&MessageOrigin::Hook, None, false), Some(Authority::NonOwner));
        assert_eq!(of(&MessageOrigin::Agent(AgentId::main()), None, true), None);
        let remote = MessageOrigin::Remote { instance: "a".into(), agent: "b".into() };
        assert_eq!(of(&remote, meta.as_ref(), true), Some(Authority::NonOwner), "whatever it says of itself");
    }
}
