//! Telegram, over its Bot API: one long poll per bot. An update is confirmed only after it was accepted.
//!
//! A client of our own, on the HTTP client that is needed anyway: see docs/decisions/dependencies.md.

mod account;
mod api;
mod attachments;
mod inbound;
mod poll;
mod update;

use std::collections::BTreeMap;

use polyclaw_domain::config;

use crate::accounts::PlatformAccounts;
use crate::client::PlatformClients;
use crate::{Error, RetryTiming};
use account::TelegramAccount;

/// The channel's name in addresses.
pub const CHANNEL_NAME: &str = "telegram";

pub type TelegramAdapter = PlatformAccounts<TelegramAccount>;

impl TelegramAdapter {
    /// Opens the enabled bots of the config.
    pub fn from_config(bots: &BTreeMap<String, config::TelegramConfig>) -> Result<Self, Error> {
        Self::with_retry_timing(bots, RetryTiming::default())
    }

    pub fn with_retry_timing(
        bots: &BTreeMap<String, config::TelegramConfig>,
        pace: RetryTiming,
    ) -> Result<Self, Error> {
        let clients = PlatformClients::new(pace.request_timeout)?;
        Self::from_enabled(
            bots,
            |bot| &bot.access,
            |name, bot| TelegramAccount::new(name, bot, &clients, pace),
        )
    }
}
