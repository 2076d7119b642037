//! Delays before retries: doubled with each failure up to a maximum, with jitter, so that what failed together is not
//! retried together. All retries of the workspace use this type.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// The range of the delays. The first failure waits `initial`; each further one twice as long, `max` at most.
#[derive(Clone, Copy, Debug)]
pub struct BackoffPolicy {
    initial: Duration,
    max: Duration,
}

impl BackoffPolicy {
    pub const fn new(initial: Duration, max: Duration) -> Self {
        Self { initial, max }
    }

    /// Returns the delay after a number of failures, less a jitter of up to a quarter. The same seed and number give
    /// the same delay, so a stored number of failures is enough to continue after a restart.
    pub fn delay(self, failures: u32, seed: impl Hash) -> Duration {
        let delay = self.delay_without_jitter(failures);
        delay - delay / 4 * jitter_share((seed, failures)) / JITTER_STEPS
    }

    pub fn delay_without_jitter(self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(20);
        self.initial.saturating_mul(1 << doublings).min(self.max)
    }

    pub fn start(self, seed: impl Hash) -> Backoff {
        Backoff { policy: self, seed: hash_of(seed), failures: 0 }
    }
}

/// Counts the failures of one task and returns the delay after each.
#[derive(Clone, Debug)]
pub struct Backoff {
    policy: BackoffPolicy,
    seed: u64,
    failures: u32,
}

impl Backoff {
    /// Records a failure and returns the delay before the next attempt.
    pub fn next_delay(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.policy.delay(self.failures, self.seed)
    }

    /// Starts again with the initial delay, after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

/// Adds up to a quarter to a delay that somebody else asked for and that must not be shortened.
pub fn add_jitter(delay: Duration, seed: impl Hash) -> Duration {
    delay + delay / 4 * jitter_share(seed) / JITTER_STEPS
}

const JITTER_STEPS: u32 = 256;

fn jitter_share(seed: impl Hash) -> u32 {
    u32::try_from(hash_of(seed) % u64::from(JITTER_STEPS)).unwrap_or_default()
}

fn hash_of(seed: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const POLICY: BackoffPolicy = BackoffPolicy::new(Duration::from_secs(1), Duration::from_secs(60));

    #[test]
    fn delays_double_up_to_the_maximum_and_reset_after_success() {
        let mut backoff = POLICY.start("account");
        for whole in [1, 2, 4, 8, 16, 32, 60, 60] {
            let (delay, whole) = (backoff.next_delay(), Duration::from_secs(whole));
            assert!(delay >= whole * 3 / 4 && delay <= whole, "{delay:?} of {whole:?}");
        }
        backoff.failures = u32::MAX;
        assert!(backoff.next_delay() <= Duration::from_secs(60));
        backoff.reset();
        assert!(backoff.next_delay() <= Duration::from_secs(1));
    }

    #[test]
    fn delays_differ_by_seed_and_repeat_for_the_same_seed() {
        let delays: HashSet<_> = (0..100).map(|seed| POLICY.delay(1, seed)).collect();
        assert!(delays.len() > 20, "{}", delays.len());
        assert_eq!(POLICY.delay(3, "turn"), POLICY.delay(3, "turn"));
    }

    #[test]
    fn added_jitter_never_shortens_a_delay() {
        let asked = Duration::from_secs(2);
        let delays: HashSet<_> = (0..100).map(|seed| add_jitter(asked, seed)).collect();
        assert!(delays.iter().all(|delay| (asked..=asked * 5 / 4).contains(delay)) && delays.len() > 20);
    }
}
