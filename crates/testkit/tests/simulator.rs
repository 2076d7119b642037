//! The crash simulator over many seeds. `POLYCLAW_SEEDS` says how many, `POLYCLAW_SEED` where to start.

use polyclaw_domain::kill_points::KillPoint;
use polyclaw_testkit::simulator;

fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn every_message_is_answered_once_under_random_kills() {
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
fn simulation_reports_its_blind_spots() {
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
fn simulation_with_same_seed_repeats_the_run() {
    for seed in 1..20 {
        let once = format!("{:?}", simulator::run_seed(seed));
        assert_eq!(once, format!("{:?}", simulator::run_seed(seed)), "seed {seed}");
    }
}
