//! Which models are in cooldown, and for how long.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use polyclaw_domain::provider::ErrorClass;
use polyclaw_domain::time::Millis;

const SECOND_MS: i64 = 1000;

/// Maximum cooldown. A provider that asks for more is called again after this.
const MAX_COOLDOWN_MS: i64 = 3600 * SECOND_MS;

#[derive(Default)]
pub(crate) struct Cooldowns(Mutex<HashMap<(usize, String), Millis>>);

impl Cooldowns {
    pub fn start(&self, credential: usize, model: &str, now: Millis, rest: i64) {
        let mut resting = self.lock();
        resting.retain(|_, until| *until > now);
        resting.insert((credential, model.to_owned()), now.plus(rest));
    }

    pub fn clear(&self, credential: usize, model: &str) {
        let mut resting = self.lock();
        // The map is usually empty; then no key needs to be built.
        if !resting.is_empty() {
            resting.remove(&(credential, model.to_owned()));
        }
    }

    pub fn is_cooling(&self, credential: usize, model: &str, now: Millis) -> bool {
        let resting = self.lock();
        // A remaining cooldown above the maximum means that the clock was set back; it is ignored.
        let rests = |until: &Millis| (1..=MAX_COOLDOWN_MS).contains(&until.since(now));
        !resting.is_empty() && resting.get(&(credential, model.to_owned())).is_some_and(rests)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(usize, String), Millis>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the cooldown after a failure in milliseconds, or `None` for failures that say nothing about the next call.
pub(crate) fn cooldown_ms(class: ErrorClass, retry_after_ms: Option<u64>) -> Option<i64> {
    let usual = match class {
        ErrorClass::RateLimit => 30 * SECOND_MS,
        ErrorClass::Overload => 10 * SECOND_MS,
        // A hanging model costs a full timeout on each call.
        ErrorClass::Timeout => 120 * SECOND_MS,
        ErrorClass::Quota | ErrorClass::Auth => 60 * SECOND_MS,
        _ => return None,
    };
    let asked = retry_after_ms.map(|ms| i64::try_from(ms).unwrap_or(MAX_COOLDOWN_MS));
    Some(asked.unwrap_or(usual).min(MAX_COOLDOWN_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cooldown_expires_and_applies_per_model_and_credential() {
        let cooldowns = Cooldowns::default();
        cooldowns.start(0, "m", Millis(1000), 500);
        assert!(cooldowns.is_cooling(0, "m", Millis(1499)));
        assert!(!cooldowns.is_cooling(0, "m", Millis(1500)));
        assert!(
            !cooldowns.is_cooling(0, "m", Millis(1000 - MAX_COOLDOWN_MS)),
            "a clock set back does not prolong it"
        );
        assert!(!cooldowns.is_cooling(1, "m", Millis(1000)) && !cooldowns.is_cooling(0, "n", Millis(1000)));
    }

    #[test]
    fn only_repeatable_failures_start_a_cooldown() {
        assert_eq!(cooldown_ms(ErrorClass::RateLimit, Some(2000)), Some(2000));
        assert_eq!(cooldown_ms(ErrorClass::RateLimit, None), Some(30_000));
        assert_eq!(cooldown_ms(ErrorClass::RateLimit, Some(u64::MAX)), Some(MAX_COOLDOWN_MS));
        assert_eq!(cooldown_ms(ErrorClass::Unreachable, Some(2000)), None);
        assert_eq!(cooldown_ms(ErrorClass::BadRequest, None), None);
    }
}
