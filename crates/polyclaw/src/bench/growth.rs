//! Measures how costs grow with the amount of stored data, as curves in one chart.

mod chart;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::bench::bench_daemon::BenchDaemon;
use crate::bench::turns::LongSession;
use crate::bench::{BenchmarkReport, memory, route, size, teams};

#[derive(clap::Args)]
pub struct Args {
    /// Draw the curves to this file as SVG.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Cost of one operation by amount of data.
struct CostCurve {
    name: &'static str,
    unit: &'static str,
    points: Vec<(usize, f64)>,
}

pub async fn run(report: &mut BenchmarkReport, args: &Args, seconds: Duration) -> anyhow::Result<()> {
    let curves = [
        measure_sessions(seconds).await?,
        measure_transcript().await?,
        measure_bindings(seconds),
        measure_tasks().await?,
        measure_memories(seconds).await?,
    ];
    for curve in &curves {
        for (count, cost) in &curve.points {
            report.add(format!("{}, {count}", curve.name), *cost, curve.unit, None);
        }
    }
    if let Some(path) = &args.svg {
        std::fs::write(path, chart::draw_chart(&curves))?;
    }
    Ok(())
}

async fn measure_sessions(seconds: Duration) -> anyhow::Result<CostCurve> {
    let subject = Arc::new(BenchDaemon::start("").await?);
    let (mut points, mut stored) = (Vec::new(), 0);
    for count in [100, 1_000, 10_000, 50_000] {
        size::create_sessions(&subject, stored..count).await?;
        stored = count;
        points.push((count, size::added_turn_latency(&subject, &format!("of-{count}"), seconds).await?));
    }
    Ok(CostCurve { name: "a turn, by stored sessions", unit: "ms", points })
}

async fn measure_transcript() -> anyhow::Result<CostCurve> {
    let subject = BenchDaemon::start("").await?;
    let (mut points, mut long) = (Vec::new(), LongSession::default());
    for count in [1, 60, 125, 250, 500, 1_000] {
        points.push((count, long.added_latency_at(&subject, count - 1).await?));
    }
    Ok(CostCurve { name: "a turn, by turns before it", unit: "ms", points })
}

fn measure_bindings(seconds: Duration) -> CostCurve {
    let counts = [10, 100, 1_000, 10_000, 100_000];
    let points = counts.map(|count| (count, route::median_us(count, seconds / 5)));
    CostCurve { name: "a route, by bindings", unit: "us", points: points.to_vec() }
}

async fn measure_tasks() -> anyhow::Result<CostCurve> {
    let mut points = Vec::new();
    for count in [100, 1_000, 10_000, 50_000] {
        points.push((count, teams::median_claim_ms(count).await?));
    }
    Ok(CostCurve { name: "a claim, by tasks", unit: "ms", points })
}

async fn measure_memories(seconds: Duration) -> anyhow::Result<CostCurve> {
    let counts = [1_000, 10_000, 30_000, 100_000];
    let medians = memory::measure_growth(&counts, seconds).await?;
    let points = counts.iter().zip(medians).map(|(count, cost)| Ok((usize::try_from(*count)?, cost)));
    Ok(CostCurve {
        name: "a recall, by memories",
        unit: "ms",
        points: points.collect::<anyhow::Result<_>>()?,
    })
}
