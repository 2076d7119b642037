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

use polyclaw_domain::config;

use crate::accounts::Accounts;
use crate::client::Clients;
use crate::{Error, Pace};
use account::Account;

/// The channel's name in addresses.
pub const NAME: &str = "discord";

pub type Discord = Accounts<Account>;

impl Discord {
    /// The enabled bots of a config.
    pub fn from_config(bots: &BTreeMap<String, config::DiscordConfig>) -> Result<Self, Error> {
        Self::with_pace(bots, Pace::default())
    }

    pub fn with_pace(bots: &BTreeMap<String, config::DiscordConfig>, pace: Pace) -> Result<Self, Error> {
        let clients = Clients::new(pace.patience)?;
        Self::enabled(bots, |bot| &bot.access, |name, bot| Account::new(name, bot, &clients, pace))
    }
}
