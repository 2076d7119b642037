//! The audit log of changes. An entry is committed together with its change or before it.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use polyclaw_domain::audit::{AuditChain, AuditChainBreak, AuditEntry, AuditHead, AuditRecord};
use polyclaw_store::Tx;
use polyclaw_store::registry::audit;

use crate::access::ControlCaller;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::file;

/// Entries read per query while a chain is verified.
const VERIFY_BATCH_SIZE: usize = 1000;

pub(crate) fn append_optional(tx: &mut Tx<'_>, entry: Option<&AuditEntry>) -> polyclaw_store::Result<()> {
    entry.map_or(Ok(()), |entry| audit::append(tx, entry))
}

impl Control {
    pub(crate) fn audit_entry(&self, by: &ControlCaller, action: &str, target: impl ToString) -> AuditEntry {
        AuditEntry {
            who: by.who.clone(),
            action: action.to_owned(),
            target: target.to_string(),
            before: None,
            after: None,
            detail: String::new(),
            at: self.now(),
        }
    }

    pub(crate) async fn record_audit(&self, entry: AuditEntry) -> Result<()> {
        Ok(self.db.write(move |tx| audit::append(tx, &entry)).await?)
    }

    /// Lists entries before a sequence number, newest first.
    pub async fn list_audit(&self, before: Option<i64>, limit: usize) -> Result<Vec<AuditRecord>> {
        let before = before.unwrap_or(i64::MAX);
        Ok(self.db.read(move |tx: &mut Tx<'_>| audit::list_latest(tx, before, limit)).await?)
    }

    /// Recomputes every hash, and compares the chain with the recorded heads: one in the database and one in a file.
    pub async fn verify_audit(&self) -> Result<(AuditChain, Option<AuditChainBreak>)> {
        let mut chain = AuditChain::default();
        let Some(head) = self.db.read(audit::get_head).await? else {
            return Ok((chain, Some(AuditChainBreak { seq: 0, reason: "the recorded head was removed" })));
        };
        let heads: Vec<AuditHead> = self.read_audit_head_file().into_iter().chain([head]).collect();
        loop {
            let seq = chain.len();
            let links =
                self.db.read(move |tx: &mut Tx<'_>| audit::list_after(tx, seq, VERIFY_BATCH_SIZE)).await?;
            if links.is_empty() {
                break;
            }
            if let Err(broken) = links.iter().try_for_each(|link| verify_link(&mut chain, link, &heads)) {
                return Ok((chain, Some(broken)));
            }
        }
        let missing = heads.iter().find_map(|head| chain.find_missing_entry(head));
        let broken = match missing {
            None => self.db.read(audit::get_head).await?.and_then(|head| find_appended_rows(&chain, &head)),
            missing => missing,
        };
        Ok((chain, broken))
    }

    fn audit_head_path(&self) -> PathBuf {
        self.home.join("cp/audit.head")
    }

    /// Reads the head file. It is outside the database, so hiding a cut requires changing both.
    fn read_audit_head_file(&self) -> Option<AuditHead> {
        let text = std::fs::read_to_string(self.audit_head_path()).ok()?;
        let (entries, hash) = text.trim().split_once(' ')?;
        Some(AuditHead { entries: entries.parse().ok()?, hash: hash.to_owned() })
    }

    /// Updates the head file. A head that does not match the log is kept, because it is the evidence of a cut.
    pub(crate) async fn update_audit_head_file(&self) -> Result<()> {
        let Some(head) = self.db.read(audit::get_head).await? else { return Ok(()) };
        let noted = self.read_audit_head_file();
        if noted.as_ref() == Some(&head) {
            return Ok(());
        }
        if let Some(noted) = noted.filter(|noted| noted.entries > 0) {
            let before = noted.entries - 1;
            let links = self.db.read(move |tx: &mut Tx<'_>| audit::list_after(tx, before, 1)).await?;
            if !links.first().is_some_and(|link| link.seq == noted.entries && link.hash == noted.hash) {
                if !self.audit_doubted.swap(true, Ordering::Relaxed) {
                    tracing::error!(
                        "the audit log does not match cp/audit.head: run `polyclaw audit verify` for details; if a power cut explains it, remove that file"
                    );
                }
                return Ok(());
            }
        }
        let (path, text) = (self.audit_head_path(), format!("{} {}\n", head.entries, head.hash));
        file::write_atomically(&path, text.as_bytes()).map_err(|error| Error::from_io(path, &error))
    }
}

fn verify_link(
    chain: &mut AuditChain,
    link: &AuditRecord,
    heads: &[AuditHead],
) -> std::result::Result<(), AuditChainBreak> {
    chain.verify_next(link)?;
    if heads.iter().any(|head| chain.diverges_from(head)) {
        Err(AuditChainBreak { seq: link.seq, reason: "the entry was replaced" })
    } else {
        Ok(())
    }
}

/// Finds rows that were appended behind the last recorded entry.
fn find_appended_rows(chain: &AuditChain, head: &AuditHead) -> Option<AuditChainBreak> {
    let why = "the entry was added outside the control plane";
    (chain.len() > head.entries).then_some(AuditChainBreak { seq: head.entries + 1, reason: why })
}
