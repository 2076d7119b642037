//! `polyclaw bench`: measures the cost of Polyclaw on this machine, as ratios to a direct call in the same run.

use clap::Subcommand;

use crate::bench::{self, BenchmarkReport};
use crate::cli::CommandContext;

/// Measure the speed of this build on this machine, with a scripted model that answers immediately.
///
/// Everything runs on loopback, in a temporary home, for a bounded time. "Direct" is the same call, made straight to
/// the model by the same HTTP client in the same run.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw bench turns      added latency and turns per second over a direct call
  polyclaw bench ingress    durably accepted messages per second
  polyclaw bench stream     latency of a token from the model to its reader
  polyclaw bench size       100,000 sessions compared with an empty database
  polyclaw bench growth     how costs grow with the amount of data; --svg FILE draws a chart
  polyclaw bench subagents   cost of a sub-agent, and of 200 concurrent ones
  polyclaw bench teams      64 claimers in 4 processes share 10,000 tasks
  polyclaw bench broker     messages between instances per second
  polyclaw bench store      small transactions per second
  polyclaw bench route      one routing decision among 10,000 bindings
  polyclaw bench memory     recall from 100,000 memories
  polyclaw bench start      startup time, memory, binary size
  polyclaw bench soak --seconds 300
  polyclaw bench all --json")]
pub struct Args {
    #[command(subcommand)]
    what: BenchCommand,
    /// Seconds that each measurement lasts.
    #[arg(long, global = true, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
}

#[derive(Subcommand)]
enum BenchCommand {
    /// Measure the latency that a turn adds, and turns per second.
    #[command(after_help = "Examples:
  polyclaw bench turns
  polyclaw bench turns --seconds 30 --json")]
    Turns,
    /// Measure durably accepted messages per second.
    #[command(after_help = "Examples:
  polyclaw bench ingress")]
    Ingress,
    /// Measure the latency of a token from the model to its reader.
    #[command(after_help = "Examples:
  polyclaw bench stream")]
    Stream,
    /// Compare 100,000 sessions with an empty database. Takes minutes.
    #[command(after_help = "Examples:
  polyclaw bench size")]
    Size,
    /// Measure how costs grow with sessions, turns, bindings, tasks and memories. Takes minutes.
    #[command(after_help = "Examples:
  polyclaw bench growth --svg growth.svg")]
    Growth(bench::growth::Args),
    /// Measure the cost of a sub-agent over its model call, and of 200 sub-agents at the same time.
    #[command(after_help = "Examples:
  polyclaw bench subagents")]
    Subagents,
    /// Let 64 claimers in 4 processes share the tasks of a team.
    ///
    /// The tasks are in a file, or in PostgreSQL if POLYCLAW_BENCH_DATABASE is the URL of an empty database.
    #[command(after_help = "Examples:
  polyclaw bench teams")]
    Teams(bench::teams::Args),
    /// Run one claimer process. `bench teams` starts it.
    #[command(hide = true)]
    Claims,
    /// Measure messages between instances per second.
    #[command(after_help = "Examples:
  polyclaw bench broker")]
    Broker,
    /// Measure transactions per second.
    #[command(after_help = "Examples:
  polyclaw bench store")]
    Store,
    /// Measure one routing decision among 10,000 bindings.
    #[command(after_help = "Examples:
  polyclaw bench route")]
    Route,
    /// Measure recall from 100,000 memories.
    #[command(after_help = "Examples:
  polyclaw bench memory")]
    Memory,
    /// Measure startup time, memory and size.
    #[command(after_help = "Examples:
  polyclaw bench start")]
    Start,
    /// Run 500 concurrent sessions for a given time.
    #[command(after_help = "Examples:
  polyclaw bench soak --seconds 300
  polyclaw bench soak --minutes 60")]
    Soak(bench::soak::Args),
    /// Run all benchmarks except size, growth and soak.
    #[command(after_help = "Examples:
  polyclaw bench all --json")]
    All,
}

pub fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    if matches!(args.what, BenchCommand::Claims) {
        return runtime.block_on(bench::teams::run_claimer_process());
    }
    let report = runtime.block_on(run_benchmark(args))?;
    context.output.print_value(&report.to_json(), |_| report.to_text())?;
    Ok(())
}

async fn run_benchmark(args: &Args) -> anyhow::Result<BenchmarkReport> {
    let mut report = BenchmarkReport::default();
    let seconds = std::time::Duration::from_secs(args.seconds);
    if matches!(args.what, BenchCommand::Store | BenchCommand::All) {
        bench::store::run(&mut report, seconds).await?;
    }
    if matches!(args.what, BenchCommand::Route | BenchCommand::All) {
        bench::route::run(&mut report, seconds);
    }
    if matches!(args.what, BenchCommand::Memory | BenchCommand::All) {
        bench::memory::run(&mut report, seconds).await?;
    }
    if matches!(args.what, BenchCommand::Start | BenchCommand::All) {
        bench::start::run(&mut report).await?;
    }
    if matches!(args.what, BenchCommand::Ingress | BenchCommand::All) {
        bench::ingress::run(&mut report, seconds).await?;
    }
    if matches!(args.what, BenchCommand::Stream | BenchCommand::All) {
        bench::stream::run(&mut report, seconds).await?;
    }
    if matches!(args.what, BenchCommand::Subagents | BenchCommand::All) {
        bench::subagents::run(&mut report, seconds).await?;
    }
    if let BenchCommand::Teams(teams) = &args.what {
        bench::teams::run(&mut report, teams).await?;
    }
    if matches!(args.what, BenchCommand::All) {
        bench::teams::run(&mut report, &bench::teams::Args::default()).await?;
    }
    if matches!(args.what, BenchCommand::Broker | BenchCommand::All) {
        bench::broker::run(&mut report, seconds).await?;
    }
    if let BenchCommand::Growth(growth) = &args.what {
        bench::growth::run(&mut report, growth, seconds).await?;
    }
    if matches!(args.what, BenchCommand::Size) {
        bench::size::run(&mut report, seconds).await?;
    }
    if let BenchCommand::Soak(soak) = &args.what {
        bench::soak::run(&mut report, soak, seconds).await?;
    }
    if matches!(args.what, BenchCommand::Turns | BenchCommand::All) {
        bench::turns::run(&mut report, seconds).await?;
    }
    Ok(report)
}
