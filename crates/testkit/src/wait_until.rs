//! Waiting with a bound: what never comes fails a test, and does not hang it.

use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Real time, also where the clock of the test is virtual.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Asks again and again until it is so.
///
/// # Panics
///
/// When it is not so after a minute.
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
