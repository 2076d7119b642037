//! WhatsApp, over Meta's Cloud API. Messages arrive as requests to `/channels/whatsapp/<account>`.

mod account;
mod api;
mod content;
mod event;
mod webhook;

use std::collections::BTreeMap;
use std::sync::Arc;

use polyclaw_domain::config;
use polyclaw_domain::port::WallClock;

use crate::accounts::PlatformAccounts;
use crate::client::PlatformClients;
use crate::{Error, RetryTiming};
use account::WhatsappAccount;

/// The channel's name in addresses.
pub const CHANNEL_NAME: &str = "whatsapp";

pub type WhatsappAdapter = PlatformAccounts<WhatsappAccount>;

impl WhatsappAdapter {
    /// Opens the enabled numbers of the config.
    pub fn from_config(
        accounts: &BTreeMap<String, config::WhatsappConfig>,
        clock: Arc<dyn WallClock>,
    ) -> Result<Self, Error> {
        Self::with_retry_timing(accounts, clock, RetryTiming::default())
    }

    pub fn with_retry_timing(
        accounts: &BTreeMap<String, config::WhatsappConfig>,
        clock: Arc<dyn WallClock>,
        pace: RetryTiming,
    ) -> Result<Self, Error> {
        let clients = PlatformClients::new(pace.request_timeout)?;
        let open =
            |name: &str, settings: &_| WhatsappAccount::new(name, settings, Arc::clone(&clock), &clients);
        Self::from_enabled(accounts, |settings| &settings.access, open)
    }
}
