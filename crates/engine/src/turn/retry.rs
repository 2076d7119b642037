//! Retries of model calls, within limits: rate limits are waited for and transient failures are retried, so that a turn
//! is not lost to a busy minute or a broken connection. Fallback models are tried first.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::backoff::{BackoffPolicy, add_jitter};
use polyclaw_domain::id::TurnId;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::provider::{ErrorClass, ProviderError};
use polyclaw_store::jobs::{self, TurnJobKind};
use tokio::time::{Instant, sleep};

use crate::core::Engine;
use crate::draft::DraftStream;
use crate::hub::FrameKind;
use crate::live_reply;
use crate::prompt::TurnContext;
use crate::reply_text;
use crate::turn::{TurnAbort, TurnResult};
use crate::worker::RunningTurn;

/// Maximum number of waits for a rate limit per answer.
const MAX_RATE_LIMIT_WAITS: u32 = 3;
/// Waits if the provider names none.
const RATE_LIMIT_BACKOFF: BackoffPolicy = BackoffPolicy::new(Duration::from_secs(2), Duration::from_secs(60));
/// Maximum number of retries after transient failures. If a quarter of all calls fail, one answer in four thousand is
/// still lost.
const MAX_TRANSIENT_RETRIES: u32 = 5;
/// Maximum number of retries after empty replies. Lower, because each one is paid for.
const MAX_EMPTY_RETRIES: u32 = 2;
const TRANSIENT_BACKOFF: BackoffPolicy =
    BackoffPolicy::new(Duration::from_millis(250), Duration::from_secs(10));
/// Minimum wait, whatever the provider asks for.
const MIN_RETRY_WAIT: Duration = Duration::from_millis(500);
/// A provider that asks for a longer wait than this is not retried.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(60);
/// Waits from this length on are shown to subscribers.
const MIN_ANNOUNCED_WAIT: Duration = Duration::from_secs(5);
/// Interval between keepalives while waiting.
const KEEPALIVE_INTERVAL: Duration = Duration::from_millis(250);
/// Keepalives between two checks for a newer message.
const KEEPALIVES_PER_STEER_CHECK: u32 = 4;

/// Retries used for one answer.
#[derive(Default)]
pub(crate) struct ModelRetryPolicy {
    waits: u32,
    retries: u32,
}

/// When to retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RetryDecision {
    /// After a rate limit.
    After(Duration),
    /// After a transient failure.
    Retry(Duration),
}

impl ModelRetryPolicy {
    /// Waits until the model may be called again, or returns the error that ends the turn.
    pub async fn wait_or_fail(
        &mut self,
        engine: &Engine,
        running: &Arc<RunningTurn>,
        context: &TurnContext,
        error: ProviderError,
    ) -> TurnResult<()> {
        let Some(again) = self.next_decision(&error, &running.claim.turn) else { return Err(error.into()) };
        // A reply that broke off starts again from the beginning.
        live_reply::retract_streamed(engine, running, context);
        let (RetryDecision::After(wait) | RetryDecision::Retry(wait)) = again;
        tracing::info!(model = %error.model, class = error.class.as_str(), wait_ms = wait.as_millis(),
            "retrying model call");
        let locale = engine.settings().locale_for(&context.session);
        if let Some(frame) = self.retry_frame(again, (&error, locale), running) {
            engine.hub.publish(&running.claim.session, frame);
        }
        // Shows a typing indicator on platforms.
        let drafting = DraftStream::start(engine, running, context);
        let rested = sleep_with_keepalive(engine, running, (context, wait)).await;
        if let Some(drafting) = drafting {
            drafting.finish().await;
        }
        rested
    }

    /// Returns the frame that tells subscribers about the wait.
    fn retry_frame(
        &self,
        again: RetryDecision,
        (error, locale): (&ProviderError, Locale),
        running: &RunningTurn,
    ) -> Option<FrameKind> {
        let turn_id = running.claim.turn.clone();
        match again {
            RetryDecision::Retry(wait) => Some(FrameKind::Retrying {
                turn_id,
                model: error.model.clone(),
                reason: error.class.as_str().to_owned(),
                attempt: self.retries,
                wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            }),
            RetryDecision::After(wait) if wait >= MIN_ANNOUNCED_WAIT => {
                let seconds = wait.as_millis().div_ceil(1_000);
                let text = reply_text::notice::rate_limited(locale, &error.model, seconds);
                Some(FrameKind::Notice { turn_id, text })
            }
            RetryDecision::After(_) => None,
        }
    }

    /// Returns when to retry; `None` if it is useless.
    fn next_decision(&mut self, error: &ProviderError, turn: &TurnId) -> Option<RetryDecision> {
        match (error.class, error.retry_after_ms) {
            (ErrorClass::Overload, Some(_)) => self.rate_limit_wait(error, turn).map(RetryDecision::After),
            (class, _) if class.is_transient() => {
                self.transient_backoff(class, turn).map(RetryDecision::Retry)
            }
            _ => self.rate_limit_wait(error, turn).map(RetryDecision::After),
        }
    }

    fn transient_backoff(&mut self, class: ErrorClass, turn: &TurnId) -> Option<Duration> {
        let most = if class == ErrorClass::Empty { MAX_EMPTY_RETRIES } else { MAX_TRANSIENT_RETRIES };
        if self.retries >= most {
            return None;
        }
        self.retries += 1;
        Some(TRANSIENT_BACKOFF.delay(self.retries, turn))
    }

    fn rate_limit_wait(&mut self, error: &ProviderError, turn: &TurnId) -> Option<Duration> {
        let asked = match (error.class, error.retry_after_ms) {
            (ErrorClass::RateLimit | ErrorClass::Overload, Some(ms)) => Duration::from_millis(ms),
            (ErrorClass::RateLimit, None) => RATE_LIMIT_BACKOFF.delay_without_jitter(self.waits + 1),
            _ => return None,
        };
        if self.waits == MAX_RATE_LIMIT_WAITS || asked > MAX_RETRY_WAIT {
            return None;
        }
        self.waits += 1;
        Some(add_jitter(asked.max(MIN_RETRY_WAIT), (turn, self.waits)))
    }
}

/// Sleeps without triggering the stall timer. A draining engine releases the turn, and a newer message goes first if
/// there are stored results to resume the task from.
async fn sleep_with_keepalive(
    engine: &Engine,
    running: &RunningTurn,
    (context, wait): (&TurnContext, Duration),
) -> TurnResult<()> {
    let may_yield = running.claim.kind == TurnJobKind::Turn && context.last_step().is_some();
    let until = Instant::now() + wait;
    for breath in 0_u32.. {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        if engine.is_draining() {
            return Err(TurnAbort::HandedBack);
        }
        if may_yield && breath % KEEPALIVES_PER_STEER_CHECK == 0 && is_steered(engine, running).await? {
            return Err(TurnAbort::Steered);
        }
        running.note_progress();
        sleep(left.min(KEEPALIVE_INTERVAL)).await;
    }
    Ok(())
}

async fn is_steered(engine: &Engine, running: &RunningTurn) -> TurnResult<bool> {
    let session = running.claim.session.clone();
    let read = engine.db().read(move |tx| jobs::is_steered(tx, &session));
    read.await.map_err(|error| TurnAbort::Lost(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(class: ErrorClass, retry_after_ms: Option<u64>) -> ProviderError {
        ProviderError { class, model: "a/b".into(), message: "slow down".into(), retry_after_ms }
    }

    /// Returns the waits of a turn that always fails in the same way.
    fn waits(class: ErrorClass, retry_after_ms: Option<u64>) -> Vec<Duration> {
        let (mut retry, turn) = (ModelRetryPolicy::default(), TurnId::new("t"));
        let next = || retry.next_decision(&error(class, retry_after_ms), &turn);
        std::iter::from_fn(next)
            .map(|(RetryDecision::After(wait) | RetryDecision::Retry(wait))| wait)
            .collect()
    }

    #[test]
    fn rate_limit_waits_follow_retry_after_or_back_off() {
        let asked = waits(ErrorClass::RateLimit, Some(20_000));
        assert_eq!(asked.len(), 3);
        assert!(asked.iter().all(|wait| (20..=25).contains(&wait.as_secs())), "{asked:?}");
        let own = waits(ErrorClass::RateLimit, None);
        for (wait, least) in own.iter().zip([2, 4, 8]) {
            let least = Duration::from_secs(least);
            assert!((least..=least + least / 4).contains(wait), "{own:?}");
        }
        assert_eq!(own.len(), 3);
        assert!(waits(ErrorClass::RateLimit, Some(0)).iter().all(|wait| *wait >= MIN_RETRY_WAIT));
    }

    #[test]
    fn too_long_retry_after_and_quota_errors_are_not_retried() {
        assert!(waits(ErrorClass::RateLimit, Some(3_600_000)).is_empty());
        assert_eq!(waits(ErrorClass::Overload, Some(1_000)).len(), 3);
        assert!(waits(ErrorClass::Quota, Some(1_000)).is_empty());
    }

    #[test]
    fn transient_errors_are_retried_within_seconds() {
        for class in [ErrorClass::Overload, ErrorClass::Unreachable, ErrorClass::Malformed] {
            let waits = waits(class, None);
            assert_eq!(waits.len(), 5);
            assert!(waits[0] < Duration::from_millis(400), "{waits:?}");
            assert!(waits.iter().sum::<Duration>() < Duration::from_secs(10), "{waits:?}");
        }
        assert_eq!(waits(ErrorClass::Empty, None).len(), 2);
        assert!(waits(ErrorClass::BadRequest, None).is_empty() && waits(ErrorClass::Auth, None).is_empty());
    }

    #[test]
    fn retry_waits_of_concurrent_turns_are_jittered() {
        let waits: std::collections::HashSet<_> =
            (0..100).map(|n| add_jitter(Duration::from_secs(2), TurnId::new(format!("t{n}")))).collect();
        assert!(waits.len() > 50, "{}", waits.len());
    }
}
