//! The system's clock.

use std::time::{SystemTime, UNIX_EPOCH};

use polyclaw_domain::port::WallClock;
use polyclaw_domain::time::Millis;

pub struct SystemClock;

impl WallClock for SystemClock {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}
