//! Timeouts and retry delays of an adapter. Tests use shorter ones.

use std::time::Duration;

use polyclaw_domain::backoff::{Backoff, BackoffPolicy};

use crate::client;

#[derive(Clone, Copy, Debug)]
pub struct RetryTiming {
    /// Total timeout of a request.
    pub request_timeout: Duration,
    /// The delay after the first failure. It doubles with each further failure.
    pub initial_backoff: Duration,
    /// The maximum delay. Also used for failures that only a person can fix.
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
        BackoffPolicy::new(self.initial_backoff, self.max_backoff).start(fastrand::u64(..))
    }
}
