//! `polyclaw selftest`: runs the crash simulation on this machine.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use polyclaw_testkit::simulator::{self, SimulationTotals};
use serde_json::json;

use crate::cli::CommandContext;
use crate::failure::CommandFailure;

/// Verify on this machine that crashes never lose or duplicate messages.
///
/// Each run is a small conversation on the real engine with an in-memory database. A seed decides who writes what,
/// which tools the model calls and where the process crashes. The same seed always gives the same run.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw selftest                        1,000 runs from a seed taken from the clock
  polyclaw selftest --crash 10000          10,000 runs
  polyclaw selftest --crash 1 --seed 44    repeat one run, with its events if it fails")]
pub struct Args {
    /// Number of runs.
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    crash: u64,
    /// First seed. The other runs use the seeds that follow it.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

/// This many runs cover every case many times.
const MIN_RUNS_FOR_COVERAGE: u64 = 1_000;

pub fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let seed = args.seed.unwrap_or_else(seed_from_clock);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let began = Instant::now();
    let (shown, redrawn) = (!context.output.json, std::io::stderr().is_terminal());
    let progress = |done: u64| {
        if shown && should_print_progress(done, args.crash, redrawn) {
            let end = if redrawn && done < args.crash { "\r" } else { "\n" };
            let _ = write!(std::io::stderr(), "{done} of {} runs{end}", args.crash);
        }
    };
    progress(0);
    let outcome = simulator::run_many(seed, args.crash, threads, &progress);
    let totals = outcome.map_err(|broken| {
        CommandFailure::failed("selftest_invariant_violated", broken.to_string())
            .hint(format!("repeat it with: polyclaw selftest --crash 1 --seed {}", broken.seed))
    })?;
    if let Some(spot) = totals.blind_spots().filter(|_| args.crash >= MIN_RUNS_FOR_COVERAGE) {
        let message = format!("{spot} in {} runs: the simulation proves nothing about it", totals.runs);
        return Err(CommandFailure::failed("selftest_no_coverage", message).into());
    }
    let seconds = began.elapsed().as_secs_f64();
    context.output.print_value(&as_json(&totals, seed, seconds), |_| as_text(&totals, seed, seconds))?;
    Ok(())
}

/// Returns whether to print progress: every 10 runs on a redrawn line, else at each tenth of the total.
fn should_print_progress(done: u64, all: u64, redrawn: bool) -> bool {
    let step = if redrawn { 10 } else { all.div_ceil(10).max(1) };
    done.is_multiple_of(step) || done == all
}

fn seed_from_clock() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(1, |since| since.as_secs())
}

fn as_json(totals: &SimulationTotals, seed: u64, seconds: f64) -> serde_json::Value {
    json!({
        "runs": totals.runs, "seed": seed, "seconds": seconds, "accepted": totals.accepted,
        "steered": totals.steered, "unknown_deliveries": totals.unknown, "given_up": totals.failed,
        "kills": totals.kills, "lost": 0, "doubled": 0,
    })
}

fn as_text(totals: &SimulationTotals, seed: u64, seconds: f64) -> String {
    let kills: u64 = totals.kills.values().sum();
    let mut text = format!(
        "{} runs from seed {seed} in {seconds:.1} s: {} messages, {kills} kills, {} steered turns\n\
         0 lost, 0 duplicated, 0 effects repeated; {} deliveries held as unknown, {} turns failed after 3 attempts",
        totals.runs, totals.accepted, totals.steered, totals.unknown, totals.failed
    );
    for (point, times) in &totals.kills {
        text.push_str(&format!("\n  killed at {point:18} {times:6}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selftest_prints_a_bounded_number_of_progress_lines() {
        let text_of = |all: u64, redrawn: bool| {
            (0..=all).filter(|done| should_print_progress(*done, all, redrawn)).count()
        };
        assert_eq!((text_of(10_000, false), text_of(1, false), text_of(7, false)), (11, 2, 8));
        assert_eq!(text_of(1_000, true), 101);
    }
}
