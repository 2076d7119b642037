//! Matrix, by the client-server API. Rooms that are encrypted cannot be read.

mod account;
mod api;
mod event;
mod invite;
mod listen;
mod session;
mod text;
mod timeline;

use std::collections::BTreeMap;
use std::fmt;

use futures_util::future::join_all;
use polyclaw_domain::channel::{Address, Capabilities, Channel, Inbox, Sent};
use polyclaw_domain::config;
use polyclaw_domain::delivery::Outgoing;
use polyclaw_domain::port::Pending;

use crate::client::Clients;
use crate::{Error, Pace, answer};
use account::Account;

/// The channel's name in addresses.
pub const NAME: &str = "matrix";

/// An event has at most 65,536 bytes. A character takes up to six in JSON, and a changed message holds its text
/// twice.
const MAX_CHARS: usize = 5_000;

/// Synapse keeps keys for a day, others in memory for half an hour at least.
const REMEMBERED_MS: i64 = 30 * 60 * 1000;

pub struct Matrix {
    accounts: BTreeMap<String, Account>,
}

impl Matrix {
    pub fn from_config(accounts: &BTreeMap<String, config::Matrix>) -> Result<Self, Error> {
        Self::with_pace(accounts, Pace::default())
    }

    pub fn with_pace(accounts: &BTreeMap<String, config::Matrix>, pace: Pace) -> Result<Self, Error> {
        let clients = Clients::new(pace.patience)?;
        let enabled = accounts.iter().filter(|(_, settings)| settings.access.enabled);
        let account = |(name, settings): (&String, &config::Matrix)| {
            Ok((name.clone(), Account::new(name, settings.clone(), &clients, pace)?))
        };
        Ok(Self { accounts: enabled.map(account).collect::<Result<_, _>>()? })
    }

    fn account(&self, address: &Address) -> Result<&Account, Sent> {
        self.accounts.get(&address.account).ok_or_else(|| answer::no_account(address))
    }
}

impl Channel for Matrix {
    /// A homeserver knows a key again and answers with the message it made of it.
    fn capabilities(&self, _: &str) -> Capabilities {
        Capabilities { idempotent_send: true, max_chars: MAX_CHARS, edits: true }
    }

    fn remembers_ms(&self, _: &str) -> Option<i64> {
        Some(REMEMBERED_MS)
    }

    fn send<'a>(&'a self, key: &'a str, outgoing: &'a Outgoing) -> Pending<'a, Sent> {
        Box::pin(async move {
            match self.account(outgoing.address()) {
                Ok(account) => account.send(key, outgoing).await,
                Err(rejected) => rejected,
            }
        })
    }

    fn edit<'a>(&'a self, platform_id: &'a str, outgoing: &'a Outgoing) -> Pending<'a, Sent> {
        Box::pin(async move {
            match self.account(outgoing.address()) {
                Ok(account) => account.change(platform_id, outgoing).await,
                Err(rejected) => rejected,
            }
        })
    }

    fn typing<'a>(&'a self, address: &'a Address) -> Pending<'a, ()> {
        Box::pin(async move {
            if let Ok(account) = self.account(address) {
                account.show_typing(&address.peer).await;
            }
        })
    }

    fn receive<'a>(&'a self, inbox: &'a dyn Inbox) -> Pending<'a, ()> {
        let listening: Vec<_> = self.accounts.values().map(|account| account.listen(inbox)).collect();
        Box::pin(async move {
            join_all(listening).await;
        })
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.accounts.keys()).finish()
    }
}
