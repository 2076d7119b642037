//! Whether an account is connected, and if not why: kept for people who ask.

use std::sync::{Mutex, PoisonError};

use polyclaw_domain::channel::Standing;

#[derive(Default)]
pub(crate) struct Link(Mutex<Standing>);

impl Link {
    pub fn connected(&self) {
        self.set(Standing::Connected);
    }

    pub fn apart(&self, why: impl Into<String>) {
        self.set(Standing::Apart(why.into()));
    }

    pub fn standing(&self) -> Standing {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, standing: Standing) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = standing;
    }
}
