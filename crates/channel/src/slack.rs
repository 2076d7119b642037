//! Slack, over its Web API. Events arrive over a socket that this instance opens or as requests to it.

mod account;
mod api;
mod event;
mod interaction;
mod listen;
mod text;
mod webhook;

use std::collections::BTreeMap;
use std::sync::Arc;

use polyclaw_domain::config;
use polyclaw_domain::port::WallClock;

use crate::accounts::PlatformAccounts;
use crate::client::PlatformClients;
use crate::{Error, RetryTiming};
use account::SlackAccount;

/// The channel's name in addresses.
pub const CHANNEL_NAME: &str = "slack";

pub type SlackAdapter = PlatformAccounts<SlackAccount>;

impl SlackAdapter {
    /// Opens the enabled apps of the config.
    pub fn from_config(
        accounts: &BTreeMap<String, config::SlackConfig>,
        clock: Arc<dyn WallClock>,
    ) -> Result<Self, Error> {
        Self::with_retry_timing(accounts, clock, RetryTiming::default())
    }

    pub fn with_retry_timing(
        accounts: &BTreeMap<String, config::SlackConfig>,
        clock: Arc<dyn WallClock>,
        pace: RetryTiming,
    ) -> Result<Self, Error> {
        let clients = PlatformClients::new(pace.request_timeout)?;
        let open =
            |name: &str, settings: &_| SlackAccount::new(name, settings, Arc::clone(&clock), &clients, pace);
        Self::from_enabled(accounts, |settings| &settings.access, open)
    }
}
