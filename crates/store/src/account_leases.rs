//! Leases of channel accounts: one node at a time holds an account, as long as it renews its lease.

use polyclaw_domain::id::NodeId;
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::jobs::earlier_epoch_prefix;
use crate::params;
use crate::tx::Tx;

/// Signal to other nodes that an account is free.
pub const ACCOUNTS_SIGNAL: &str = "accounts";

/// A channel and one of its accounts.
pub type ChannelAccount = (String, String);

/// The node that takes a lease, and for how long.
#[derive(Clone, Debug)]
pub struct LeaseHolder {
    pub node: NodeId,
    /// Shared name of this node's processes. Leases of its earlier processes are its own.
    pub node_name: Option<String>,
    pub now: Millis,
    pub lease_ms: i64,
}

/// Acquires a free account or renews the own lease. Returns `false` if another node has it.
pub fn acquire_or_renew(
    tx: &mut Tx<'_>,
    (channel, account): &ChannelAccount,
    taker: &LeaseHolder,
) -> Result<bool> {
    const SQL: &str =
        "INSERT INTO account_leases (channel, account, node, lease_until) VALUES ($1, $2, $3, $4)
        ON CONFLICT (channel, account) DO UPDATE SET node = excluded.node, lease_until = excluded.lease_until
        WHERE account_leases.node = excluded.node OR account_leases.lease_until < $5
          OR substr(account_leases.node, 1, length($6)) = $6";
    let now = tx.lease_clock(taker.now);
    let earlier = earlier_epoch_prefix(taker.node_name.as_deref());
    let until = now.plus(taker.lease_ms);
    Ok(tx.execute(SQL, params![channel, account, &taker.node, until, now, &earlier])? == 1)
}

/// Releases all leases of a node and notifies other nodes.
pub fn release_all_of_node(tx: &mut Tx<'_>, node: &NodeId) -> Result<()> {
    if tx.execute("DELETE FROM account_leases WHERE node = $1", params![node])? > 0 {
        tx.notify_nodes(ACCOUNTS_SIGNAL)?;
    }
    Ok(())
}

/// Lists the held accounts with their nodes. Expired leases are excluded.
pub fn list(tx: &mut Tx<'_>, now: Millis) -> Result<Vec<(ChannelAccount, NodeId)>> {
    const SQL: &str = "SELECT channel, account, node FROM account_leases WHERE lease_until >= $1
        ORDER BY channel, account";
    let now = tx.lease_clock(now);
    tx.query(SQL, params![now], |row| Ok(((row.text(0)?, row.text(1)?), NodeId::new(row.text(2)?))))
}
