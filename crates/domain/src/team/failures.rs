//! Consecutive failed turns of a team member: since when, why, and when the next attempt is.

use serde::Serialize;

use crate::time::Millis;

/// The first and the longest delay.
const INITIAL_BACKOFF_MS: i64 = 30_000;
const MAX_BACKOFF_MS: i64 = 15 * 60_000;

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
        Self { since, code: code.to_owned(), failures, retry_at: Some(now.plus(backoff_ms(failures))) }
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
pub fn backoff_ms(failures: u32) -> i64 {
    let doubled = INITIAL_BACKOFF_MS << failures.saturating_sub(1).min(16);
    doubled.min(MAX_BACKOFF_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_quarter_of_an_hour() {
        let seconds: Vec<i64> = (1..=8).map(|failures| backoff_ms(failures) / 1000).collect();
        assert_eq!(seconds, [30, 60, 120, 240, 480, 900, 900, 900]);
        assert_eq!(backoff_ms(u32::MAX), MAX_BACKOFF_MS);
    }

    #[test]
    fn a_setback_knows_when_it_began_and_why_it_goes_on() {
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
