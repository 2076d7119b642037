//! What every handler of the control plane may use. A clone is a pointer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use polyclaw_control::Control;
use polyclaw_domain::time::Millis;

use super::ws::SILENCE;
use crate::browser::BrowserLogins;
use crate::door::{Door, Names, Setting};
use crate::login::{LoginHost, Logins};
use crate::state::Auth;

/// Wrong tokens in [`WINDOW`] after which strangers wait.
const MOST: u32 = 30;
const WINDOW: Duration = Duration::from_secs(60);

/// What the binary gives.
pub struct ControlSetup {
    pub control: Control,
    pub auth: Auth,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub version: String,
    pub port: u16,
    pub logins: Logins,
    /// A reader of a socket that has said nothing for this long is let go; 90 seconds if not given.
    pub silence: Option<Duration>,
}

#[derive(Clone)]
pub struct ControlState(Arc<Inner>);

pub struct Inner {
    pub control: Control,
    pub door: Door,
    pub browsers: BrowserLogins,
    pub version: String,
    pub started: Millis,
    pub attempts: Attempts,
    pub silence: Duration,
}

impl std::ops::Deref for ControlState {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl LoginHost for ControlState {
    fn browsers(&self) -> &BrowserLogins {
        &self.browsers
    }

    fn now(&self) -> Millis {
        self.control.now()
    }

    fn nonce(&self) -> String {
        self.control.nonce()
    }
}

impl AsRef<Door> for ControlState {
    fn as_ref(&self) -> &Door {
        &self.door
    }
}

impl ControlState {
    pub fn new(setup: ControlSetup) -> Self {
        let names =
            Names { hosts: setup.allowed_hosts, origins: setup.allowed_origins, setting: Setting::Command };
        Self(Arc::new(Inner {
            started: setup.control.now(),
            browsers: BrowserLogins::new(setup.control.db().clone()),
            control: setup.control,
            door: Door::new(setup.auth, names, setup.logins, setup.port),
            version: setup.version,
            attempts: Attempts::default(),
            silence: setup.silence.unwrap_or(SILENCE),
        }))
    }
}

/// Tokens that were wrong of late.
#[derive(Default)]
pub struct Attempts(Mutex<Option<(Instant, u32)>>);

impl Attempts {
    /// Whether strangers have to wait.
    pub fn are_too_many(&self) -> bool {
        let attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        attempts.is_some_and(|(since, count)| since.elapsed() < WINDOW && count >= MOST)
    }

    pub fn failed(&self) {
        let mut attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *attempts = match *attempts {
            Some((since, count)) if since.elapsed() < WINDOW => Some((since, count + 1)),
            _ => Some((Instant::now(), 1)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_wait_after_many_wrong_tokens() {
        let attempts = Attempts::default();
        for _ in 0..MOST {
            assert!(!attempts.are_too_many());
            attempts.failed();
        }
        assert!(attempts.are_too_many());
    }
}
