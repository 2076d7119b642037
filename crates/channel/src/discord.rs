//! Discord: a gateway connection per bot for what people write, REST for what they are answered.
//!
//! A client of our own: what is resumed from has to be what was taken, and libraries resume from what they have read.
//! See docs/decisions/dependencies.md.

mod account;
mod api;
mod attachments;
mod backfill;
mod event;
mod gateway;
mod inbound;
mod interaction;
mod receive;
mod threads;

use std::collections::BTreeMap;

use polyclaw_domain::config;

use crate::accounts::PlatformAccounts;
use crate::client::PlatformClients;
use crate::{Error, RetryTiming};
use account::DiscordAccount;

/// The channel's name in addresses.
pub const CHANNEL_NAME: &str = "discord";

pub type DiscordAdapter = PlatformAccounts<DiscordAccount>;

impl DiscordAdapter {
    /// The enabled bots of a config.
    pub fn from_config(bots: &BTreeMap<String, config::DiscordConfig>) -> Result<Self, Error> {
        Self::with_retry_timing(bots, RetryTiming::default())
    }

    pub fn with_retry_timing(
        bots: &BTreeMap<String, config::DiscordConfig>,
        pace: RetryTiming,
    ) -> Result<Self, Error> {
        let clients = PlatformClients::new(pace.request_timeout)?;
        Self::from_enabled(
            bots,
            |bot| &bot.access,
            |name, bot| DiscordAccount::new(name, bot, &clients, pace),
        )
    }
}
