//! Discord: receives over one gateway connection per bot and sends over REST.
//!
//! A client of our own: a session must resume after the last event that was processed, and libraries resume after the
//! last event that they read. See docs/decisions/dependencies.md.

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
    /// Opens the enabled bots of the config.
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
