//! Slack, by its Web API. Events come by a socket that this instance opens, or by requests to it.

mod account;
mod api;
mod called;
mod event;
mod listen;
mod press;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use polyclaw_domain::config;
use polyclaw_domain::port::WallClock;

use crate::accounts::Accounts;
use crate::client::Clients;
use crate::{Error, Pace};
use account::Account;

/// The channel's name in addresses.
pub const NAME: &str = "slack";

pub type Slack = Accounts<Account>;

impl Slack {
    /// The enabled apps of a config.
    pub fn from_config(
        accounts: &BTreeMap<String, config::SlackConfig>,
        clock: Arc<dyn WallClock>,
    ) -> Result<Self, Error> {
        Self::with_pace(accounts, clock, Pace::default())
    }

    pub fn with_pace(
        accounts: &BTreeMap<String, config::SlackConfig>,
        clock: Arc<dyn WallClock>,
        pace: Pace,
    ) -> Result<Self, Error> {
        let clients = Clients::new(pace.patience)?;
        let open =
            |name: &str, settings: &_| Account::new(name, settings, Arc::clone(&clock), &clients, pace);
        Self::enabled(accounts, |settings| &settings.access, open)
    }
}
