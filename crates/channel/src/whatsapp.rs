//! WhatsApp, by Meta's Cloud API. Messages come by requests to `/channels/whatsapp/<account>`.

mod account;
mod api;
mod called;
mod content;
mod event;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use polyclaw_domain::channel::{Address, Call, CallAnswer, Capabilities, Channel, Inbox, MenuItem, Sent};
use polyclaw_domain::config;
use polyclaw_domain::delivery::Outgoing;
use polyclaw_domain::port::{Clock, Pending};

use crate::client::Clients;
use crate::{Error, Pace, answer};
use account::Account;

/// The channel's name in addresses.
pub const NAME: &str = "whatsapp";

/// Meta's own limit for the text of one message.
const MAX_CHARS: usize = 4_096;

pub struct Whatsapp {
    accounts: BTreeMap<String, Account>,
    clock: Arc<dyn Clock>,
}

impl Whatsapp {
    pub fn from_config(
        accounts: &BTreeMap<String, config::Whatsapp>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        Self::with_pace(accounts, clock, Pace::default())
    }

    pub fn with_pace(
        accounts: &BTreeMap<String, config::Whatsapp>,
        clock: Arc<dyn Clock>,
        pace: Pace,
    ) -> Result<Self, Error> {
        let clients = Clients::new(pace.patience)?;
        let enabled = accounts.iter().filter(|(_, settings)| settings.access.enabled);
        let account = |(name, settings): (&String, &config::Whatsapp)| {
            Ok((name.clone(), Account::new(name, settings.clone(), &clients)?))
        };
        Ok(Self { accounts: enabled.map(account).collect::<Result<_, _>>()?, clock })
    }

    async fn post(&self, outgoing: &Outgoing) -> Sent {
        let address = outgoing.address();
        match self.accounts.get(&address.account) {
            Some(account) => account.send(&address.peer, outgoing.text()).await,
            None => answer::no_account(address),
        }
    }
}

impl Channel for Whatsapp {
    /// Meta knows no keys of messages, so a repeat would be shown twice; and what was sent cannot be changed.
    fn capabilities(&self, _: &str) -> Capabilities {
        Capabilities { idempotent_send: false, max_chars: MAX_CHARS, edits: false }
    }

    fn send<'a>(&'a self, _: &'a str, outgoing: &'a Outgoing) -> Pending<'a, Sent> {
        Box::pin(self.post(outgoing))
    }

    fn typing<'a>(&'a self, address: &'a Address) -> Pending<'a, ()> {
        Box::pin(async move {
            if let Some(account) = self.accounts.get(&address.account) {
                account.show_typing(&address.peer).await;
            }
        })
    }

    fn menu<'a>(&'a self, account: &'a str, items: &'a [MenuItem]) -> Pending<'a, Result<(), String>> {
        Box::pin(async move {
            match self.accounts.get(account) {
                Some(account) => account.offer(items).await,
                None => Err(format!("whatsapp account '{account}' is not configured, or not enabled")),
            }
        })
    }

    fn called<'a>(&'a self, account: &'a str, call: Call, inbox: &'a dyn Inbox) -> Pending<'a, CallAnswer> {
        Box::pin(async move { self.answer(account, &call, inbox).await })
    }
}

impl fmt::Debug for Whatsapp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.accounts.keys()).finish()
    }
}
