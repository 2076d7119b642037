//! Matrix, over the client-server API. Encrypted rooms are not supported.

mod account;
mod api;
mod event;
mod invite;
mod listen;
mod session;
mod text;
mod timeline;

use std::collections::BTreeMap;

use polyclaw_domain::config;

use crate::accounts::PlatformAccounts;
use crate::client::PlatformClients;
use crate::{Error, RetryTiming};
use account::MatrixAccount;

/// The channel's name in addresses.
pub const CHANNEL_NAME: &str = "matrix";

pub type MatrixAdapter = PlatformAccounts<MatrixAccount>;

impl MatrixAdapter {
    /// Opens the enabled accounts of the config.
    pub fn from_config(accounts: &BTreeMap<String, config::MatrixConfig>) -> Result<Self, Error> {
        Self::with_retry_timing(accounts, RetryTiming::default())
    }

    pub fn with_retry_timing(
        accounts: &BTreeMap<String, config::MatrixConfig>,
        pace: RetryTiming,
    ) -> Result<Self, Error> {
        let clients = PlatformClients::new(pace.request_timeout)?;
        let open = |name: &str, settings: &_| MatrixAccount::new(name, settings, &clients, pace);
        Self::from_enabled(accounts, |settings| &settings.access, open)
    }
}
