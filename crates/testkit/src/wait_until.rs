//! Waiting with a time limit, so that a missing event fails a test instead of hanging it.

use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// In real time, even if the test's clock is virtual.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Polls until the condition holds.
///
/// # Panics
///
/// If it does not hold within a minute.
pub async fn wait_until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while began.elapsed() < WAIT_TIMEOUT {
        if is_so().await {
            return;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    panic!("waited in vain: {what}");
}
