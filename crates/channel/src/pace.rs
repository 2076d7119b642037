//! How patient an adapter is. Tests are less so.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::client;

#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How long one request may take in all.
    pub patience: Duration,
    /// The pause after a first failure; it doubles with each one that follows.
    pub first_pause: Duration,
    /// The pause after many, and after what only a person can mend.
    pub longest_pause: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            patience: client::WHOLE,
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(60),
        }
    }
}

impl Pace {
    pub(crate) fn backoff(self) -> Backoff {
        Backoff::new(self.first_pause, self.longest_pause)
    }
}
