//! The state shared by all handlers of the control plane. Cloning copies a pointer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use polyclaw_control::Control;
use polyclaw_domain::time::Millis;

use super::ws::SOCKET_IDLE_TIMEOUT;
use crate::auth::{BrowserAuth, NamesSource, ServerNames};
use crate::browser::BrowserLogins;
use crate::login::{LoginCodes, LoginHost};
use crate::state::AuthMode;

/// The number of wrong tokens in [`WRONG_TOKEN_WINDOW`] after which unknown callers are delayed.
const MAX_WRONG_TOKENS: u32 = 30;
const WRONG_TOKEN_WINDOW: Duration = Duration::from_secs(60);

/// Dependencies that the binary passes in.
pub struct ControlSetup {
    pub control: Control,
    pub auth: AuthMode,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub version: String,
    pub port: u16,
    pub logins: LoginCodes,
    /// A socket whose reader sent nothing for this long is closed. Default 90 seconds.
    pub socket_idle_timeout: Option<Duration>,
}

#[derive(Clone)]
pub struct ControlState(Arc<ControlInner>);

pub struct ControlInner {
    pub control: Control,
    pub auth: BrowserAuth,
    pub browsers: BrowserLogins,
    pub version: String,
    pub started: Millis,
    pub attempts: WrongTokenAttempts,
    pub socket_idle_timeout: Duration,
}

impl std::ops::Deref for ControlState {
    type Target = ControlInner;

    fn deref(&self) -> &ControlInner {
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

    fn new_nonce(&self) -> String {
        self.control.nonce()
    }
}

impl AsRef<BrowserAuth> for ControlState {
    fn as_ref(&self) -> &BrowserAuth {
        &self.auth
    }
}

impl ControlState {
    pub fn new(setup: ControlSetup) -> Self {
        let names = ServerNames {
            hosts: setup.allowed_hosts,
            origins: setup.allowed_origins,
            setting: NamesSource::Command,
        };
        Self(Arc::new(ControlInner {
            started: setup.control.now(),
            browsers: BrowserLogins::new(setup.control.db().clone()),
            control: setup.control,
            auth: BrowserAuth::new(setup.auth, names, setup.logins, setup.port),
            version: setup.version,
            attempts: WrongTokenAttempts::default(),
            socket_idle_timeout: setup.socket_idle_timeout.unwrap_or(SOCKET_IDLE_TIMEOUT),
        }))
    }
}

/// Recent attempts with a wrong token.
#[derive(Default)]
pub struct WrongTokenAttempts(Mutex<Option<(Instant, u32)>>);

impl WrongTokenAttempts {
    /// Whether unknown callers must wait.
    pub fn is_limit_reached(&self) -> bool {
        let attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        attempts
            .is_some_and(|(since, count)| since.elapsed() < WRONG_TOKEN_WINDOW && count >= MAX_WRONG_TOKENS)
    }

    pub fn record_failure(&self) {
        let mut attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *attempts = match *attempts {
            Some((since, count)) if since.elapsed() < WRONG_TOKEN_WINDOW => Some((since, count + 1)),
            _ => Some((Instant::now(), 1)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_token_attempts_reach_limit() {
        let attempts = WrongTokenAttempts::default();
        for _ in 0..MAX_WRONG_TOKENS {
            assert!(!attempts.is_limit_reached());
            attempts.record_failure();
        }
        assert!(attempts.is_limit_reached());
    }
}
