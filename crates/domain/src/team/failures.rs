//! Consecutive failed turns of a team member: since when, why, and when the next attempt is.

use std::time::Duration;

use serde::Serialize;

use crate::backoff::BackoffPolicy;
use crate::time::Millis;

const RETRY_BACKOFF: BackoffPolicy =
    BackoffPolicy::new(Duration::from_secs(30), Duration::from_secs(15 * 60));

/// Consecutive failures. Cleared by the first successful turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailureStreak {
    pub since: Millis,
    /// Code of the last error.
    pub code: String,
    pub failures: u32,
    /// `None` if a turn is pending, nothing waits for it, or somebody stopped it.
    pub retry_at: Option<Millis>,
}

impl FailureStreak {
    /// Returns the streak after one more failure.
    pub fn after_failure(known: Option<Self>, code: &str, now: Millis) -> Self {
        let (since, failures) = known.map_or((now, 0), |known| (known.since, known.failures));
        let failures = failures.saturating_add(1);
        Self {
            since,
            code: code.to_owned(),
            failures,
            retry_at: Some(now.plus_duration(retry_delay(failures))),
        }
    }

    /// Returns a line for people who look at the team.
    pub fn summary_line(&self) -> String {
        let next = match self.retry_at {
            Some(at) => format!(", next retry at {}", at.to_minute()),
            None => String::new(),
        };
        let times = if self.failures == 1 { "time" } else { "times" };
        format!(
            "turns have failed since {} ({}, {} {times}){next}",
            self.since.to_minute(),
            self.code,
            self.failures
        )
    }
}

/// Returns the delay after this many failures: doubled each time, up to a limit.
/// Without jitter: people see the time of the next attempt.
pub fn retry_delay(failures: u32) -> Duration {
    RETRY_BACKOFF.delay_without_jitter(failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_fifteen_minutes() {
        let seconds: Vec<u64> = (1..=8).map(|failures| retry_delay(failures).as_secs()).collect();
        assert_eq!(seconds, [30, 60, 120, 240, 480, 900, 900, 900]);
        assert_eq!(retry_delay(u32::MAX), Duration::from_secs(900));
    }

    #[test]
    fn failure_streak_keeps_start_and_latest_cause() {
        let first = FailureStreak::after_failure(None, "provider_down", Millis(1_000));
        assert!(
            first.summary_line().contains("(provider_down, 1 time), next retry"),
            "{}",
            first.summary_line()
        );
        let second = FailureStreak::after_failure(Some(first), "budget_spent", Millis(40_000));
        assert_eq!((second.since, second.failures), (Millis(1_000), 2));
        assert_eq!(
            second.summary_line(),
            "turns have failed since 1970-01-01 00:00 UTC (budget_spent, 2 times), next retry at 1970-01-01 00:01 UTC"
        );
    }
}
