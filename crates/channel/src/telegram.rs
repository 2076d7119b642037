//! Telegram, by its Bot API: one long poll per bot, and an update is confirmed only after it was taken.
//!
//! A client of our own, on the HTTP client that is here anyway: see docs/decisions/dependencies.md.

mod account;
mod api;
mod file;
mod letter;
mod poll;
mod update;

use std::collections::BTreeMap;
use std::fmt;

use futures_util::future::join_all;
use polyclaw_domain::channel::{Address, Capabilities, Channel, Inbox, MenuItem, Sent};
use polyclaw_domain::config;
use polyclaw_domain::delivery::Outgoing;
use polyclaw_domain::port::Pending;

use crate::client::Clients;
use crate::{Error, Pace, answer};
use account::Account;

/// The channel's name in addresses.
pub const NAME: &str = "telegram";

/// Telegram takes 4096 characters. Whether it counts a character outside the basic plane (most emoji) as one or, as
/// its entities do, as two is told differently; half of it fits either way.
const MAX_CHARS: usize = 2048;

pub struct Telegram {
    accounts: BTreeMap<String, Account>,
}

impl Telegram {
    /// The enabled bots of a config.
    pub fn from_config(bots: &BTreeMap<String, config::Telegram>) -> Result<Self, Error> {
        Self::with_pace(bots, Pace::default())
    }

    pub fn with_pace(bots: &BTreeMap<String, config::Telegram>, pace: Pace) -> Result<Self, Error> {
        let clients = Clients::new(pace.patience)?;
        let enabled = bots.iter().filter(|(_, bot)| bot.access.enabled);
        let account = |(name, bot): (&String, &config::Telegram)| {
            Ok((name.clone(), Account::new(name, bot, &clients, pace)?))
        };
        Ok(Self { accounts: enabled.map(account).collect::<Result<_, _>>()? })
    }

    fn account(&self, address: &Address) -> Result<&Account, Sent> {
        self.accounts.get(&address.account).ok_or_else(|| answer::no_account(address))
    }
}

impl Channel for Telegram {
    fn capabilities(&self, _: &str) -> Capabilities {
        Capabilities { idempotent_send: false, max_chars: MAX_CHARS, edits: true }
    }

    fn send<'a>(&'a self, _: &'a str, outgoing: &'a Outgoing) -> Pending<'a, Sent> {
        Box::pin(async move {
            match self.account(outgoing.address()) {
                Ok(account) => account.send(outgoing).await,
                Err(rejected) => rejected,
            }
        })
    }

    fn edit<'a>(&'a self, platform_id: &'a str, outgoing: &'a Outgoing) -> Pending<'a, Sent> {
        Box::pin(async move {
            match self.account(outgoing.address()) {
                Ok(account) => account.edit(platform_id, outgoing).await,
                Err(rejected) => rejected,
            }
        })
    }

    fn typing<'a>(&'a self, address: &'a Address) -> Pending<'a, ()> {
        Box::pin(async move {
            if let Ok(account) = self.account(address) {
                account.typing(address).await;
            }
        })
    }

    fn menu<'a>(&'a self, account: &'a str, items: &'a [MenuItem]) -> Pending<'a, Result<(), String>> {
        Box::pin(async move {
            match self.accounts.get(account) {
                Some(account) => account.menu(items).await,
                None => Err(format!("telegram account '{account}' is not configured, or not enabled")),
            }
        })
    }

    fn receive<'a>(&'a self, inbox: &'a dyn Inbox) -> Pending<'a, ()> {
        Box::pin(async move {
            join_all(self.accounts.values().map(|account| account.receive(inbox))).await;
        })
    }
}

impl fmt::Debug for Telegram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.accounts.keys()).finish()
    }
}
