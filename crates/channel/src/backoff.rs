//! Reconnect delays: exponential, with jitter, so that accounts which lost their connections together do not reconnect
//! together.

use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failures: 0 }
    }

    /// Records a failure and returns the delay before the next attempt. The delay doubles up to the maximum; jitter
    /// takes away at most half of it.
    pub fn next(&mut self) -> Duration {
        let whole = self.first.saturating_mul(1 << self.failures.min(16)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        whole.mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    /// Resets the delay after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(60);

    #[test]
    fn pauses_grow_to_the_longest_and_start_again() {
        let mut backoff = Backoff::new(FIRST, LONGEST);
        for whole in [1, 2, 4, 8, 16, 32, 60, 60] {
            let (pause, whole) = (backoff.next(), Duration::from_secs(whole));
            assert!(pause >= whole / 2 && pause <= whole, "{pause:?} of {whole:?}");
        }
        backoff.failures = u32::MAX;
        assert!(backoff.next() <= LONGEST);
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }

    #[test]
    fn two_accounts_do_not_wait_alike() {
        let pauses: std::collections::HashSet<_> =
            (0..20).map(|_| Backoff::new(FIRST, LONGEST).next()).collect();
        assert!(pauses.len() > 1);
    }
}
