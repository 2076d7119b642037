//! WhatsApp, by Meta's Cloud API. Messages come by requests to `/channels/whatsapp/<account>`.

mod account;
mod api;
mod called;
mod content;
mod event;

use std::collections::BTreeMap;
use std::sync::Arc;

use polyclaw_domain::config;
use polyclaw_domain::port::WallClock;

use crate::accounts::Accounts;
use crate::client::Clients;
use crate::{Error, Pace};
use account::Account;

/// The channel's name in addresses.
pub const NAME: &str = "whatsapp";

pub type Whatsapp = Accounts<Account>;

impl Whatsapp {
    /// The enabled numbers of a config.
    pub fn from_config(
        accounts: &BTreeMap<String, config::WhatsappConfig>,
        clock: Arc<dyn WallClock>,
    ) -> Result<Self, Error> {
        Self::with_pace(accounts, clock, Pace::default())
    }

    pub fn with_pace(
        accounts: &BTreeMap<String, config::WhatsappConfig>,
        clock: Arc<dyn WallClock>,
        pace: Pace,
    ) -> Result<Self, Error> {
        let clients = Clients::new(pace.patience)?;
        let open = |name: &str, settings: &_| Account::new(name, settings, Arc::clone(&clock), &clients);
        Self::enabled(accounts, |settings| &settings.access, open)
    }
}
