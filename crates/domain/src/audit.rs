//! The audit log: which changes were made, and by whom. Every entry holds the hash of the previous one, so recomputing
//! the hashes reveals an entry that was changed, removed or inserted.

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::hex::encode_hex;
use crate::time::Millis;

/// The hash before the first entry.
pub const GENESIS_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    /// The caller: `operator`, `token:<id>` or `instance:<id>`; `supervisor` for automatic actions.
    pub who: String,
    /// For example `instance.start`.
    pub action: String,
    /// The id of the instance or token that was changed.
    pub target: String,
    /// Hash of the previous content, if the target is a single thing.
    pub before: Option<String>,
    pub after: Option<String>,
    /// Details for people; never a secret or a body.
    pub detail: String,
    pub at: Millis,
}

/// An entry with its position in the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditRecord {
    pub seq: i64,
    #[serde(flatten)]
    pub entry: AuditEntry,
    pub previous: String,
    pub hash: String,
}

/// Returns the hash of an entry. Every part is preceded by its length, so that no two entries hash the same input.
pub fn hash_entry(previous: &str, entry: &AuditEntry) -> String {
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
    encode_hex(&digest.finalize())
}

/// Returns the hash of a content as entries store it.
pub fn content_hash(bytes: &[u8]) -> String {
    encode_hex(&Sha256::digest(bytes))
}

/// The head of a chain as recorded outside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditHead {
    pub entries: i64,
    /// Hash of the last entry.
    pub hash: String,
}

impl Default for AuditHead {
    fn default() -> Self {
        Self { entries: 0, hash: GENESIS_HASH.to_owned() }
    }
}

/// The first invalid position of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditChainBreak {
    pub seq: i64,
    pub reason: &'static str,
}

/// Verifies a chain entry by entry, from its start.
#[derive(Clone, Debug)]
pub struct AuditChain {
    last: String,
    seq: i64,
}

impl Default for AuditChain {
    fn default() -> Self {
        Self { last: GENESIS_HASH.to_owned(), seq: 0 }
    }
}

impl AuditChain {
    pub fn verify_next(&mut self, link: &AuditRecord) -> Result<(), AuditChainBreak> {
        let broken = |why| Err(AuditChainBreak { seq: link.seq, reason: why });
        if link.seq != self.seq + 1 {
            return broken("earlier entries are missing");
        }
        if link.previous != self.last {
            return broken("it does not continue the previous entry");
        }
        if link.hash != hash_entry(&link.previous, &link.entry) {
            return broken("it was modified");
        }
        (self.seq, self.last) = (link.seq, link.hash.clone());
        Ok(())
    }

    /// Returns whether the chain has as many entries as a recorded head but another hash.
    pub fn diverges_from(&self, head: &AuditHead) -> bool {
        self.seq == head.entries && self.last != head.hash
    }

    /// Returns the first missing entry if the chain is shorter than a recorded head.
    pub fn find_missing_entry(&self, head: &AuditHead) -> Option<AuditChainBreak> {
        let why = "it is missing, together with all later entries: the end was truncated, or was lost in a power \
                   failure";
        (self.seq < head.entries).then_some(AuditChainBreak { seq: self.seq + 1, reason: why })
    }

    /// Returns the hash of the last entry. Recorded elsewhere, it reveals truncation.
    pub fn head_hash(&self) -> &str {
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

    fn chain() -> Vec<AuditRecord> {
        let mut previous = GENESIS_HASH.to_owned();
        let link = |seq| {
            let entry = AuditEntry {
                who: "operator".into(),
                action: format!("instance.{seq}"),
                target: "i".into(),
                before: None,
                after: Some(String::new()),
                detail: String::new(),
                at: Millis(seq),
            };
            let hash = hash_entry(&previous, &entry);
            AuditRecord { seq, entry, previous: std::mem::replace(&mut previous, hash.clone()), hash }
        };
        (1..=4).map(link).collect()
    }

    fn verify(links: &[AuditRecord]) -> Result<(), AuditChainBreak> {
        let mut chain = AuditChain::default();
        links.iter().try_for_each(|link| chain.verify_next(link))
    }

    #[test]
    fn audit_chain_detects_tampering() {
        assert_eq!(verify(&chain()), Ok(()));
        let tampered = |change: &dyn Fn(&mut Vec<AuditRecord>)| {
            let mut links = chain();
            change(&mut links);
            verify(&links).unwrap_err().seq
        };
        assert_eq!(tampered(&|links| links[1].entry.who = "nobody".into()), 2);
        assert_eq!(tampered(&|links| links[2].entry.before = Some(String::new())), 3);
        assert_eq!(tampered(&|links| drop(links.remove(1))), 3);
        assert_eq!(tampered(&|links| links.swap(1, 2)), 3);
        let rewritten = |links: &mut Vec<AuditRecord>| {
            links[1].entry.detail = "other".into();
            links[1].hash = hash_entry(&links[1].previous, &links[1].entry);
        };
        assert_eq!(tampered(&rewritten), 3, "a new hash no longer fits the next entry");
    }

    #[test]
    fn audit_head_detects_truncated_or_replaced_entries() {
        let links = chain();
        let head = AuditHead { entries: 4, hash: links[3].hash.clone() };
        let mut whole = AuditChain::default();
        links.iter().try_for_each(|link| whole.verify_next(link)).unwrap();
        assert!(whole.find_missing_entry(&head).is_none() && !whole.diverges_from(&head));
        let mut cut = AuditChain::default();
        links[..3].iter().try_for_each(|link| cut.verify_next(link)).unwrap();
        assert_eq!(cut.find_missing_entry(&head).unwrap().seq, 4);
        assert_eq!(AuditChain::default().find_missing_entry(&head).unwrap().seq, 1, "all of it");
        let other = AuditEntry { detail: "other".into(), ..links[3].entry.clone() };
        let hash = hash_entry(cut.head_hash(), &other);
        cut.verify_next(&AuditRecord { seq: 4, entry: other, previous: links[2].hash.clone(), hash })
            .unwrap();
        assert!(cut.diverges_from(&head), "a chain of its own, and not the one that was written down");
    }

    #[test]
    fn entry_hash_separates_its_fields() {
        let entry = |who: &str, action: &str| AuditEntry {
            who: who.into(),
            action: action.into(),
            ..chain()[0].entry.clone()
        };
        assert_ne!(hash_entry(GENESIS_HASH, &entry("ab", "c")), hash_entry(GENESIS_HASH, &entry("a", "bc")));
    }
}
