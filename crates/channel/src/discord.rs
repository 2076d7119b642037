//! Discord: a gateway connection per bot for what people write, REST for what they are answered.
//!
//! A client of our own: what is resumed from has to be what was taken, and libraries resume from what they have read.
//! See docs/decisions/dependencies.md.

mod account;
mod api;
mod attached;
mod event;
mod gateway;
mod interaction;
mod letter;
mod missed;
mod place;
mod receive;

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
pub const NAME: &str = "discord";

/// Discord counts code points, and so does the engine.
const MAX_CHARS: usize = 2000;
/// Discord recognises a nonce "for a few minutes". This is surely less.
const REMEMBERED_MS: i64 = 2 * 60 * 1000;

pub struct Discord {
    accounts: BTreeMap<String, Account>,
}

impl Discord {
    /// The enabled bots of a config.
    pub fn from_config(bots: &BTreeMap<String, config::Discord>) -> Result<Self, Error> {
        Self::with_pace(bots, Pace::default())
    }

    pub fn with_pace(bots: &BTreeMap<String, config::Discord>, pace: Pace) -> Result<Self, Error> {
        let clients = Clients::new(pace.patience)?;
        let enabled = bots.iter().filter(|(_, bot)| bot.access.enabled);
        let account = |(name, bot): (&String, &config::Discord)| {
            Ok((name.clone(), Account::new(name, bot, &clients, pace)?))
        };
        Ok(Self { accounts: enabled.map(account).collect::<Result<_, _>>()? })
    }

    fn account(&self, address: &Address) -> Result<&Account, Sent> {
        self.accounts.get(&address.account).ok_or_else(|| answer::no_account(address))
    }
}

impl Channel for Discord {
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
                None => Err(format!("discord account '{account}' is not configured, or not enabled")),
            }
        })
    }

    fn receive<'a>(&'a self, inbox: &'a dyn Inbox) -> Pending<'a, ()> {
        Box::pin(async move {
            join_all(self.accounts.values().map(|account| account.receive(inbox))).await;
        })
    }
}

impl fmt::Debug for Discord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.accounts.keys()).finish()
    }
}
