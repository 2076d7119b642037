//! Whether an account is connected, and if not why: kept for people who ask.

use std::sync::{Mutex, PoisonError};

use polyclaw_domain::channel::ConnectionState;

#[derive(Default)]
pub(crate) struct Link(Mutex<ConnectionState>);

impl Link {
    pub fn connected(&self) {
        self.set(ConnectionState::Connected);
    }

    pub fn apart(&self, why: impl Into<String>) {
        self.set(ConnectionState::Disconnected(why.into()));
    }

    pub fn standing(&self) -> ConnectionState {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, standing: ConnectionState) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = standing;
    }
}
