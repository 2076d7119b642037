//! Platform accounts that this node holds, for receiving and sending. If nodes share a database, a lease gives each
//! account to one node at a time, measured by the database's clock. On SQLite there is one node, which holds all
//! accounts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polyclaw_domain::channel::ConnectionState;
use polyclaw_domain::id::NodeId;
use polyclaw_store::Tx;
use polyclaw_store::account_leases::{self, ChannelAccount, LeaseHolder};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout_at};

use super::channels::run_account;
use crate::core::Engine;
use crate::error::Result;
use crate::worker::shared_node_name;

/// Interval at which a node checks whether accounts of other nodes are free.
const LEASE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// State of the accounts that only one node can hold.
#[derive(Default)]
pub(crate) struct AccountLeases {
    known: Mutex<AccountLeaseState>,
    changed: Notify,
    poll_request: Notify,
}

#[derive(Clone, Default, PartialEq)]
struct AccountLeaseState {
    held: BTreeSet<ChannelAccount>,
    elsewhere: BTreeMap<ChannelAccount, NodeId>,
}

impl AccountLeases {
    /// Requests a check, because an account may be free.
    pub fn request_poll(&self) {
        self.poll_request.notify_one();
    }

    /// Returns when the set of held accounts has changed.
    pub async fn wait_for_change(&self) {
        self.changed.notified().await;
    }

    /// Updates the state. Returns whether the set of held accounts has changed.
    fn update(&self, known: AccountLeaseState) -> bool {
        let before = std::mem::replace(&mut *self.lock(), known.clone());
        let is_changed = before.held != known.held;
        if is_changed {
            self.changed.notify_one();
        }
        is_changed
    }

    fn lock(&self) -> MutexGuard<'_, AccountLeaseState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// All accounts that keep a connection.
    fn connecting_accounts(&self) -> Vec<ChannelAccount> {
        let mut all = Vec::new();
        for (name, channel) in &self.ports.channels {
            all.extend(channel.connection_accounts().into_iter().map(|account| (name.clone(), account)));
        }
        all
    }

    /// Whether this node may use the account: there is only one node, the account keeps no connection, or it is held
    /// here.
    pub(super) fn has_account(&self, account: &ChannelAccount) -> bool {
        !self.db().is_shared()
            || self.account_leases.lock().held.contains(account)
            || !self.keeps_connection(account)
    }

    fn keeps_connection(&self, (channel, account): &ChannelAccount) -> bool {
        self.ports
            .channels
            .get(channel)
            .is_some_and(|channel| channel.connection_accounts().contains(account))
    }

    /// Connection state of an account that another node may hold.
    pub(super) fn connection_state_here(
        &self,
        account: &ChannelAccount,
        state: ConnectionState,
    ) -> ConnectionState {
        if self.has_account(account) {
            return state;
        }
        match self.account_leases.lock().elsewhere.get(account) {
            Some(node) => ConnectionState::OnOtherNode(node.node_name().to_owned()),
            None => ConnectionState::Connecting,
        }
    }
}

/// Acquires accounts, receives from them until the engine drains, then releases them.
pub(super) async fn run_accounts(engine: &Engine) {
    let wanted = engine.connecting_accounts();
    let mut open = OpenAccounts::default();
    if engine.db().is_shared() && !wanted.is_empty() {
        maintain_leases(engine, &wanted, &mut open).await;
        open.close_all().await;
        release_leases(engine).await;
    } else {
        open.sync_with(engine, &wanted.into_iter().collect());
        engine.wait_for_drain().await;
    }
}

/// Keeps the leases. A lease that could not be renewed counts as lost before another node can acquire it.
async fn maintain_leases(engine: &Engine, wanted: &[ChannelAccount], open: &mut OpenAccounts) {
    let mut renewed = Instant::now();
    while !engine.is_draining() {
        let lease = Duration::from_millis(engine.settings().lease_ms.unsigned_abs());
        let (began, safe) = (Instant::now(), lease * 5 / 6);
        let is_due = open.is_empty() || renewed.elapsed() >= lease / 3;
        let timeout = if open.is_empty() { began + lease } else { renewed + safe };
        let taken = timeout_at(timeout, renew_or_claim_leases(engine, wanted, is_due)).await;
        let is_calm = matches!(&taken, Ok(Ok(known)) if known.held.len() == wanted.len());
        match taken {
            Ok(Ok(known)) => {
                renewed = if is_due { began } else { renewed };
                open.sync_with(engine, &known.held);
                if engine.account_leases.update(known) {
                    // Messages that other nodes could no longer send may be waiting.
                    engine.outbox_wake.notify_one();
                }
            }
            Ok(Err(error)) => tracing::warn!(%error, "could not renew account leases; retrying"),
            Err(_) => tracing::warn!("renewing account leases timed out; retrying"),
        }
        if renewed.elapsed() >= safe && !open.is_empty() {
            tracing::error!("account leases are about to expire; closing the accounts");
            open.close_all().await;
            engine.account_leases.update(AccountLeaseState::default());
        }
        tokio::select! {
            () = sleep(if is_calm { lease / 3 } else { LEASE_POLL_INTERVAL.min(lease / 3) }) => {}
            () = engine.account_leases.poll_request.notified() => {}
            () = engine.wait_for_drain() => {}
        }
    }
}

/// Acquires free accounts and renews held ones if renewal is due.
async fn renew_or_claim_leases(
    engine: &Engine,
    wanted: &[ChannelAccount],
    is_due: bool,
) -> Result<AccountLeaseState> {
    let held = engine.account_leases.lock().held.clone();
    let taker = LeaseHolder {
        node: engine.node.clone(),
        node_name: shared_node_name(engine),
        now: engine.now(),
        lease_ms: engine.settings().lease_ms,
    };
    let wanted = wanted.to_vec();
    let write = move |tx: &mut Tx<'_>| {
        let mut known = AccountLeaseState::default();
        let holders: BTreeMap<ChannelAccount, NodeId> =
            account_leases::list(tx, taker.now)?.into_iter().collect();
        for account in &wanted {
            let holder = holders.get(account);
            if let Some(node) = holder.filter(|node| !is_held_by(node, &taker)) {
                known.elsewhere.insert(account.clone(), node.clone());
                continue;
            }
            let keeps = !is_due && holder == Some(&taker.node) && held.contains(account);
            if keeps || account_leases::acquire_or_renew(tx, account, &taker)? {
                known.held.insert(account.clone());
            }
        }
        Ok(known)
    };
    Ok(engine.db().write(write).await?)
}

/// Whether the node is this one or an earlier process of it.
fn is_held_by(node: &NodeId, taker: &LeaseHolder) -> bool {
    *node == taker.node || taker.node_name.as_deref() == Some(node.node_name())
}

async fn release_leases(engine: &Engine) {
    engine.account_leases.update(AccountLeaseState::default());
    let node = engine.node.clone();
    if let Err(error) = engine.db().write(move |tx| account_leases::release_all_of_node(tx, &node)).await {
        tracing::warn!(%error, "could not release account leases; the accounts are free when they expire");
    }
}

/// Accounts that this node receives from. Dropping it closes them.
#[derive(Default)]
struct OpenAccounts {
    tasks: JoinSet<()>,
    accounts: BTreeMap<ChannelAccount, AbortHandle>,
}

impl OpenAccounts {
    fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Closes accounts that are no longer held and opens new ones.
    fn sync_with(&mut self, engine: &Engine, held: &BTreeSet<ChannelAccount>) {
        self.accounts.retain(|account, task| {
            let remains = held.contains(account);
            if !remains {
                tracing::warn!(
                    channel = account.0,
                    account = account.1,
                    "another node holds this account; closing it"
                );
                task.abort();
            }
            remains
        });
        for account in held {
            let Some(channel) = engine.ports.channels.get(&account.0) else { continue };
            if !self.accounts.contains_key(account) {
                let task =
                    self.tasks.spawn(run_account(engine.clone(), account.clone(), Arc::clone(channel)));
                self.accounts.insert(account.clone(), task);
            }
        }
    }

    /// Closes all accounts and waits until they are closed.
    async fn close_all(&mut self) {
        self.accounts.clear();
        self.tasks.shutdown().await;
    }
}
