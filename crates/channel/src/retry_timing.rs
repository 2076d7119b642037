//! How patient an adapter is. Tests are less so.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::client;

#[derive(Clone, Copy, Debug)]
pub struct RetryTiming {
    /// How long one request may take in all.
    pub request_timeout: Duration,
    /// The pause after a first failure; it doubles with each one that follows.
    pub initial_backoff: Duration,
    /// The pause after many, and after what only a person can mend.
    pub max_backoff: Duration,
}

impl Default for RetryTiming {
    fn default() -> Self {
        Self {
            request_timeout: client::REQUEST_TIMEOUT,
            initial_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(60),
        }
    }
}

impl RetryTiming {
    pub(crate) fn backoff(self) -> Backoff {
        Backoff::new(self.initial_backoff, self.max_backoff)
    }
}
