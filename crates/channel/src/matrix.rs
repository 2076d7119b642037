//! Matrix, by the client-server API. Rooms that are encrypted cannot be read.

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

use crate::accounts::Accounts;
use crate::client::Clients;
use crate::{Error, Pace};
use account::Account;

/// The channel's name in addresses.
pub const NAME: &str = "matrix";

pub type Matrix = Accounts<Account>;

impl Matrix {
    /// The enabled accounts of a config.
    pub fn from_config(accounts: &BTreeMap<String, config::MatrixConfig>) -> Result<Self, Error> {
        Self::with_pace(accounts, Pace::default())
    }

    pub fn with_pace(accounts: &BTreeMap<String, config::MatrixConfig>, pace: Pace) -> Result<Self, Error> {
        let clients = Clients::new(pace.patience)?;
        let open = |name: &str, settings: &_| Account::new(name, settings, &clients, pace);
        Self::enabled(accounts, |settings| &settings.access, open)
    }
}
