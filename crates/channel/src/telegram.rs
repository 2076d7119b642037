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

use polyclaw_domain::config;

use crate::accounts::Accounts;
use crate::client::Clients;
use crate::{Error, Pace};
use account::Account;

/// The channel's name in addresses.
pub const NAME: &str = "telegram";

pub type Telegram = Accounts<Account>;

impl Telegram {
    /// The enabled bots of a config.
    pub fn from_config(bots: &BTreeMap<String, config::TelegramConfig>) -> Result<Self, Error> {
        Self::with_pace(bots, Pace::default())
    }

    pub fn with_pace(bots: &BTreeMap<String, config::TelegramConfig>, pace: Pace) -> Result<Self, Error> {
        let clients = Clients::new(pace.patience)?;
        Self::enabled(bots, |bot| &bot.access, |name, bot| Account::new(name, bot, &clients, pace))
    }
}
