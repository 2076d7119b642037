//! How long adapters wait. Tests are in more of a hurry than platforms.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::client::WHOLE;

#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How long an answer may take in all.
    pub answer: Duration,
    /// How long a platform may be silent before it is asked whether it is there, or asked again for news.
    pub silence: Duration,
    /// The pause after a connection broke; it grows.
    pub first_pause: Duration,
    pub longest_pause: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            answer: WHOLE,
            silence: Duration::from_secs(30),
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(60),
        }
    }
}

impl Pace {
    pub(crate) fn backoff(&self) -> Backoff {
        Backoff::new(self.first_pause, self.longest_pause)
    }
}
