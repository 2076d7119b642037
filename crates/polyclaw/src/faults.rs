//! Kill points in the real process, for crash tests. Armed by `POLYCLAW_KILL_AT`; inactive without it.

use std::sync::atomic::{AtomicU64, Ordering};

use polyclaw_domain::kill_points::{FaultInjector, KillPoint};
use polyclaw_domain::port::BoxFuture;

use crate::failure::CommandFailure;

pub const KILL_AT_ENV: &str = "POLYCLAW_KILL_AT";

/// Ignores every kill point.
pub struct NoFaults;

impl FaultInjector for NoFaults {
    fn hit_kill_point(&self, _: KillPoint) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Kills this process with SIGKILL: no destructors, no flush.
pub struct ArmedFaults {
    plan: FaultPlan,
    reached: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultPlan {
    /// When this kill point is reached for the n-th time.
    At(KillPoint, u64),
    /// At any kill point with this probability per 10,000, deterministic for a seed.
    Random { seed: u64, per_10_000: u64 },
}

impl ArmedFaults {
    /// Parses `<kill point>:<n>` or `random:<seed>:<probability per 10000>`.
    pub fn parse(text: &str) -> Result<Self, CommandFailure> {
        let plan = parse_plan(text).ok_or_else(|| {
            let points: Vec<&str> = KillPoint::ALL.iter().map(|point| point.as_str()).collect();
            CommandFailure::usage(format!("{KILL_AT_ENV}={text:?} is not a kill point"))
                .hint(format!("write <point>:<n> or random:<seed>:<per 10000>; points: {}", points.join(" ")))
        })?;
        Ok(Self { plan, reached: AtomicU64::new(0) })
    }

    fn is_due(&self, point: KillPoint) -> bool {
        match self.plan {
            FaultPlan::At(wanted, n) => wanted == point && self.count() == n,
            FaultPlan::Random { seed, per_10_000 } => {
                splitmix64(seed ^ splitmix64(self.count())) % 10_000 < per_10_000
            }
        }
    }

    fn count(&self) -> u64 {
        self.reached.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl FaultInjector for ArmedFaults {
    fn hit_kill_point(&self, point: KillPoint) -> BoxFuture<'_, ()> {
        if !self.is_due(point) {
            return Box::pin(std::future::ready(()));
        }
        tracing::error!(point = point.as_str(), "kill point reached; killing this process");
        let killed = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        if killed.is_err() {
            std::process::abort();
        }
        Box::pin(std::future::pending())
    }
}

fn parse_plan(text: &str) -> Option<FaultPlan> {
    match text.split(':').collect::<Vec<_>>().as_slice() {
        ["random", seed, odds] => Some(FaultPlan::Random {
            seed: seed.parse().ok()?,
            per_10_000: odds.parse().ok().filter(|odds| *odds <= 10_000)?,
        }),
        [point] => Some(FaultPlan::At(KillPoint::parse(point)?, 1)),
        [point, n] => Some(FaultPlan::At(KillPoint::parse(point)?, n.parse().ok().filter(|n| *n > 0)?)),
        _ => None,
    }
}

/// SplitMix64: spreads a counter over all numbers.
fn splitmix64(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_plans_are_parsed_and_invalid_ones_rejected() {
        assert_eq!(parse_plan("stream.mid:3"), Some(FaultPlan::At(KillPoint::MidStream, 3)));
        assert_eq!(parse_plan("random:7:25"), Some(FaultPlan::Random { seed: 7, per_10_000: 25 }));
        for bad in ["", "nowhere:1", "stream.mid:0", "stream.mid:x", "random:7", "random:7:10001"] {
            assert_eq!(parse_plan(bad), None, "{bad}");
        }
    }

    #[test]
    fn fault_is_due_at_nth_visit_of_its_kill_point() {
        let armed = ArmedFaults::parse("stream.mid:2").unwrap();
        let visits =
            [KillPoint::MidStream, KillPoint::TurnClaimed, KillPoint::MidStream, KillPoint::MidStream];
        assert_eq!(visits.map(|point| armed.is_due(point)), [false, false, true, false]);
    }

    #[test]
    fn random_faults_repeat_with_their_seed_at_given_rate() {
        let deaths = |seed: u64| {
            let armed = ArmedFaults::parse(&format!("random:{seed}:500")).unwrap();
            (0..10_000).filter(|_| armed.is_due(KillPoint::MidStream)).collect::<Vec<_>>()
        };
        assert_eq!(deaths(1), deaths(1));
        assert_ne!(deaths(1), deaths(2));
        assert!((300..700).contains(&deaths(1).len()));
    }
}
