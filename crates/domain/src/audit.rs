//! The record of what was changed and by whom. Each entry holds the hash of the one before it, so an entry that was
//! changed, taken out or put in between is found by whoever counts the hashes again.

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::hex::hex;
use crate::time::Millis;

/// The hash before the first entry.
pub const ORIGIN: &str = "0000000000000000000000000000000000000000000000000000000000000000";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Whose token it was: `operator`, `token:<id>` or `instance:<id>`; `supervisor` for what nobody asked for.
    pub who: String,
    /// Such as `instance.start`.
    pub action: String,
    /// The instance or token it was done to, by id.
    pub target: String,
    /// The hash of what was there, where that is one thing.
    pub before: Option<String>,
    pub after: Option<String>,
    /// More for people; never a secret, never a body.
    pub detail: String,
    pub at: Millis,
}

/// An entry in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    pub seq: i64,
    #[serde(flatten)]
    pub entry: Entry,
    pub previous: String,
    pub hash: String,
}

/// The hash of an entry behind another. Each part is counted before it is hashed: no two entries read alike.
pub fn hash(previous: &str, entry: &Entry) -> String {
    let at = entry.at.0.to_string();
    let part =
        |text: &Option<String>| text.as_ref().map_or_else(|| "-".to_owned(), |text| format!("+{text}"));
    let (before, after) = (part(&entry.before), part(&entry.after));
    let parts =
        [previous, &entry.who, &entry.action, &entry.target, &before, &after, &entry.detail, at.as_str()];
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    hex(&digest.finalize())
}

/// The hash of a thing as entries name it.
pub fn fingerprint(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Where a chain stops being whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Break {
    pub seq: i64,
    pub why: &'static str,
}

/// Follows a chain, link by link, from its beginning.
#[derive(Clone, Debug)]
pub struct Chain {
    last: String,
    seq: i64,
}

impl Default for Chain {
    fn default() -> Self {
        Self { last: ORIGIN.to_owned(), seq: 0 }
    }
}

impl Chain {
    pub fn follow(&mut self, link: &Link) -> Result<(), Break> {
        let broken = |why| Err(Break { seq: link.seq, why });
        if link.seq != self.seq + 1 {
            return broken("entries before it are missing");
        }
        if link.previous != self.last {
            return broken("it does not follow the entry before it");
        }
        if link.hash != hash(&link.previous, &link.entry) {
            return broken("it was changed");
        }
        (self.seq, self.last) = (link.seq, link.hash.clone());
        Ok(())
    }

    /// The hash of the last entry: written down elsewhere, it shows whether the end was cut off.
    pub fn head(&self) -> &str {
        &self.last
    }

    pub fn len(&self) -> i64 {
        self.seq
    }

    pub fn is_empty(&self) -> bool {
        self.seq == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain() -> Vec<Link> {
        let mut previous = ORIGIN.to_owned();
        let link = |seq| {
            let entry = Entry {
                who: "operator".into(),
                action: format!("instance.{seq}"),
                target: "i".into(),
                before: None,
                after: Some(String::new()),
                detail: String::new(),
                at: Millis(seq),
            };
            let hash = hash(&previous, &entry);
            Link { seq, entry, previous: std::mem::replace(&mut previous, hash.clone()), hash }
        };
        (1..=4).map(link).collect()
    }

    fn verify(links: &[Link]) -> Result<(), Break> {
        let mut chain = Chain::default();
        links.iter().try_for_each(|link| chain.follow(link))
    }

    #[test]
    fn a_chain_shows_every_way_to_tamper_with_it() {
        assert_eq!(verify(&chain()), Ok(()));
        let tampered = |change: &dyn Fn(&mut Vec<Link>)| {
            let mut links = chain();
            change(&mut links);
            verify(&links).unwrap_err().seq
        };
        assert_eq!(tampered(&|links| links[1].entry.who = "nobody".into()), 2);
        assert_eq!(tampered(&|links| links[2].entry.before = Some(String::new())), 3);
        assert_eq!(tampered(&|links| drop(links.remove(1))), 3);
        assert_eq!(tampered(&|links| links.swap(1, 2)), 3);
        let rewritten = |links: &mut Vec<Link>| {
            links[1].entry.detail = "other".into();
            links[1].hash = hash(&links[1].previous, &links[1].entry);
        };
        assert_eq!(tampered(&rewritten), 3, "a new hash no longer fits the next entry");
    }

    #[test]
    fn parts_of_an_entry_do_not_run_into_each_other() {
        let entry = |who: &str, action: &str| Entry {
            who: who.into(),
            action: action.into(),
            ..chain()[0].entry.clone()
        };
        assert_ne!(hash(ORIGIN, &entry("ab", "c")), hash(ORIGIN, &entry("a", "bc")));
    }
}
