//! The audit log of changes.

use polyclaw_domain::audit::AuditRecord;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct AuditEntryList {
    /// The entries of this page, newest first.
    pub entries: Vec<AuditEntryView>,
    /// The cursor of the next page. Null on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct AuditEntryView {
    /// The sequence number of the entry.
    pub seq: i64,
    /// Who made the change: `operator`, `token:<id>`, `instance:<id>` or `supervisor`.
    pub who: String,
    /// What was done, such as `instance.start`.
    pub action: String,
    /// The id of the changed object.
    pub target: String,
    /// The hash of the object before the change, if known.
    pub before: Option<String>,
    /// The hash of the object after the change, if known.
    pub after: Option<String>,
    /// Details, such as the name of the instance.
    pub detail: String,
    /// When the change was made.
    #[schema(value_type = String, format = DateTime)]
    pub at: Millis,
    /// A hash over this entry and the hash of the previous one, which covers all earlier entries.
    pub hash: String,
}

impl From<AuditRecord> for AuditEntryView {
    fn from(link: AuditRecord) -> Self {
        let entry = link.entry;
        Self {
            seq: link.seq,
            who: entry.who,
            action: entry.action,
            target: entry.target,
            before: entry.before,
            after: entry.after,
            detail: entry.detail,
            at: entry.at,
            hash: link.hash,
        }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct AuditChainView {
    /// Whether the chain is intact.
    pub intact: bool,
    /// The number of verified entries.
    pub entries: i64,
    /// The hash of the last entry. A copy kept elsewhere shows whether entries at the end were removed.
    pub head: String,
    /// The sequence number of the first bad entry. Null if the chain is intact.
    pub broken_at: Option<i64>,
    /// What is wrong with it. Null if the chain is intact.
    pub reason: Option<String>,
}
