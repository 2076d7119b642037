//! Tracks whether an account is connected and, if not, the reason, for status pages.

use std::sync::{Mutex, PoisonError};

use polyclaw_domain::channel::ConnectionState;

#[derive(Default)]
pub(crate) struct ConnectionTracker(Mutex<ConnectionState>);

impl ConnectionTracker {
    pub fn set_connected(&self) {
        self.set(ConnectionState::Connected);
    }

    pub fn set_disconnected(&self, why: impl Into<String>) {
        self.set(ConnectionState::Disconnected(why.into()));
    }

    pub fn connection_state(&self) -> ConnectionState {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, state: ConnectionState) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}
