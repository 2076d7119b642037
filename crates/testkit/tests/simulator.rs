//! The crash simulator over many seeds. `POLYCLAW_SEEDS` says how many, `POLYCLAW_SEED` where to start.

use polyclaw_testkit::simulator;

fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn whatever_dies_every_message_is_answered_once() {
    let (first, count) = (from_env("POLYCLAW_SEED", 1), from_env("POLYCLAW_SEEDS", 2_000));
    let totals = match simulator::run_many(first, count, 2, &|_| {}) {
        Ok(totals) => totals,
        Err(broken) => panic!("{broken}\nagain: polyclaw selftest --crash 1 --seed {}", broken.seed),
    };
    println!("{totals:?}");
    if count >= 10_000 {
        // Teams have a simulation of their own.
        for point in polyclaw_domain::fault::KillPoint::ALL.iter().filter(|point| !point.is_of_teams()) {
            let kills = totals.kills.get(point.as_str()).copied().unwrap_or(0);
            assert!(kills >= 20, "{} was hit {kills} times: the simulation misses it", point.as_str());
        }
        assert!(totals.steered > 1_000, "steered {}", totals.steered);
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 1..20 {
        let once = format!("{:?}", simulator::run(seed));
        assert_eq!(once, format!("{:?}", simulator::run(seed)), "seed {seed}");
    }
}
