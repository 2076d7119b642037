//! What was changed, by whom. An entry is committed with the change it tells of, or before it.

use polyclaw_domain::audit::{Break, Chain, Entry, Link};
use polyclaw_store::Tx;
use polyclaw_store::registry::audit;

use crate::access::Caller;
use crate::control::Control;
use crate::error::Result;

/// Entries read at a time while a chain is followed.
const STRIDE: usize = 1000;

pub(crate) fn note(tx: &mut Tx<'_>, entry: Option<&Entry>) -> polyclaw_store::Result<()> {
    entry.map_or(Ok(()), |entry| audit::append(tx, entry))
}

impl Control {
    pub(crate) fn entry(&self, by: &Caller, action: &str, target: impl ToString) -> Entry {
        Entry {
            who: by.who.clone(),
            action: action.to_owned(),
            target: target.to_string(),
            before: None,
            after: None,
            detail: String::new(),
            at: self.now(),
        }
    }

    pub(crate) async fn record(&self, entry: Entry) -> Result<()> {
        Ok(self.db.write(move |tx| audit::append(tx, &entry)).await?)
    }

    /// The newest entries first, before a number.
    pub async fn audit(&self, before: Option<i64>, limit: usize) -> Result<Vec<Link>> {
        let before = before.unwrap_or(i64::MAX);
        Ok(self.db.read(move |tx: &mut Tx<'_>| audit::latest(tx, before, limit)).await?)
    }

    /// Counts every hash again.
    pub async fn verify_audit(&self) -> Result<(Chain, Option<Break>)> {
        let mut chain = Chain::default();
        loop {
            let seq = chain.len();
            let links = self.db.read(move |tx: &mut Tx<'_>| audit::after(tx, seq, STRIDE)).await?;
            if links.is_empty() {
                return Ok((chain, None));
            }
            if let Err(broken) = links.iter().try_for_each(|link| chain.follow(link)) {
                return Ok((chain, Some(broken)));
            }
        }
    }
}
