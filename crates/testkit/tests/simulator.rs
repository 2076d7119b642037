//! The crash simulator over many seeds. `POLYCLAW_SEEDS` says how many, `POLYCLAW_SEED` where to start.

use polyclaw_domain::kill_points::KillPoint;
use polyclaw_testkit::simulator;

fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn whatever_dies_every_message_is_answered_once() {
    let (first, count) = (from_env("POLYCLAW_SEED", 1), from_env("POLYCLAW_SEEDS", 2_000));
    let totals = match simulator::run_many(first, count, 2, &|_| {}) {
        Ok(totals) => totals,
        Err(broken) => panic!("{broken}\nrepeat it with: polyclaw selftest --crash 1 --seed {}", broken.seed),
    };
    println!("{totals:?}");
    if count >= 1_000 {
        assert_eq!(totals.blind_spots(), None, "the simulation misses something");
    }
}

#[test]
fn a_simulation_that_kills_or_steers_nothing_is_found_out() {
    let mut totals = simulator::SimulationTotals::default();
    assert!(totals.blind_spots().unwrap().contains("ingress.before, ingress.committed"));
    totals.kills = KillPoint::ALL.iter().map(|point| (point.as_str(), 1)).collect();
    assert_eq!(totals.blind_spots().as_deref(), Some("no turn was ever steered"));
    totals.steered = 1;
    assert_eq!(totals.blind_spots(), None);
    totals.kills.remove("stream.mid");
    assert_eq!(totals.blind_spots().as_deref(), Some("nothing was ever killed at stream.mid"));
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 1..20 {
        let once = format!("{:?}", simulator::run_seed(seed));
        assert_eq!(once, format!("{:?}", simulator::run_seed(seed)), "seed {seed}");
    }
}
