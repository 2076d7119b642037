//! The audit log. It is append-only, which the database enforces.

use polyclaw_domain::audit::{AuditEntry, AuditHead, AuditRecord, hash_entry};

use crate::error::Result;
use crate::params;
use crate::tx::{Row, Tx};

/// Appends an entry after the recorded head. If entries were cut off, a detectable gap remains.
pub fn append(tx: &mut Tx<'_>, entry: &AuditEntry) -> Result<()> {
    const ADVANCE_HEAD: &str = "UPDATE audit_head SET entries = $1, hash = $2";
    const SQL: &str =
        "INSERT INTO audit (seq, actor, action, target, before_hash, after_hash, detail, created_at,
          previous_hash, hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    // If the head was deleted, the chain continues after its last entry, and verification reports the missing head.
    let last = match get_head(tx)? {
        Some(head) => head,
        None => find_last_entry(tx)?.unwrap_or_default(),
    };
    let (seq, previous) = (last.entries + 1, last.hash);
    let hash = hash_entry(&previous, entry);
    let params = params![
        seq,
        &entry.who,
        &entry.action,
        &entry.target,
        entry.before.as_ref(),
        entry.after.as_ref(),
        &entry.detail,
        entry.at,
        &previous,
        &hash
    ];
    tx.execute(SQL, params)?;
    tx.execute(ADVANCE_HEAD, params![seq, &hash]).map(drop)
}

/// Returns the recorded head of the log.
pub fn get_head(tx: &mut Tx<'_>) -> Result<Option<AuditHead>> {
    const SQL: &str = "SELECT entries, hash FROM audit_head";
    tx.query_one(SQL, &[], audit_head_from_row)
}

/// Returns the head according to the last row.
fn find_last_entry(tx: &mut Tx<'_>) -> Result<Option<AuditHead>> {
    const SQL: &str = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1";
    tx.query_one(SQL, &[], audit_head_from_row)
}

fn audit_head_from_row(row: &Row<'_>) -> Result<AuditHead> {
    Ok(AuditHead { entries: row.int(0)?, hash: row.text(1)? })
}

/// Lists entries after a number, in order.
pub fn list_after(tx: &mut Tx<'_>, seq: i64, limit: usize) -> Result<Vec<AuditRecord>> {
    const SQL: &str =
        "SELECT seq, actor, action, target, before_hash, after_hash, detail, created_at, previous_hash, hash
        FROM audit WHERE seq > $1 ORDER BY seq LIMIT $2";
    tx.query(SQL, params![seq, limit], audit_link_from_row)
}

/// Lists entries before a number, newest first.
pub fn list_latest(tx: &mut Tx<'_>, before: i64, limit: usize) -> Result<Vec<AuditRecord>> {
    const SQL: &str =
        "SELECT seq, actor, action, target, before_hash, after_hash, detail, created_at, previous_hash, hash
        FROM audit WHERE seq < $1 ORDER BY seq DESC LIMIT $2";
    tx.query(SQL, params![before, limit], audit_link_from_row)
}

fn audit_link_from_row(row: &Row<'_>) -> Result<AuditRecord> {
    let entry = AuditEntry {
        who: row.text(1)?,
        action: row.text(2)?,
        target: row.text(3)?,
        before: row.opt_text(4)?,
        after: row.opt_text(5)?,
        detail: row.text(6)?,
        at: row.time(7)?,
    };
    Ok(AuditRecord { seq: row.int(0)?, entry, previous: row.text(8)?, hash: row.text(9)? })
}
