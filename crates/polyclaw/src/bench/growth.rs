//! How costs grow with what is stored: each as a curve, and all of them as one picture.

mod picture;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::bench::subject::Subject;
use crate::bench::turns::LongSession;
use crate::bench::{Report, memory, route, size, teams};

#[derive(clap::Args)]
pub struct Args {
    /// Draw the curves into this file, as SVG.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// What one thing costs, by how much there is of it.
struct Curve {
    name: &'static str,
    unit: &'static str,
    points: Vec<(usize, f64)>,
}

pub async fn run(report: &mut Report, args: &Args, seconds: Duration) -> anyhow::Result<()> {
    let curves = [
        sessions(seconds).await?,
        transcript().await?,
        bindings(seconds),
        tasks().await?,
        memories(seconds).await?,
    ];
    for curve in &curves {
        for (count, cost) in &curve.points {
            report.add(format!("{}, {count}", curve.name), *cost, curve.unit, None);
        }
    }
    if let Some(path) = &args.svg {
        std::fs::write(path, picture::draw(&curves))?;
    }
    Ok(())
}

async fn sessions(seconds: Duration) -> anyhow::Result<Curve> {
    let subject = Arc::new(Subject::start("").await?);
    let (mut points, mut stored) = (Vec::new(), 0);
    for count in [100, 1_000, 10_000, 50_000] {
        size::fill(&subject, stored..count).await?;
        stored = count;
        points.push((count, size::added(&subject, &format!("of-{count}"), seconds).await?));
    }
    Ok(Curve { name: "a turn, by stored sessions", unit: "ms", points })
}

async fn transcript() -> anyhow::Result<Curve> {
    let subject = Subject::start("").await?;
    let (mut points, mut long) = (Vec::new(), LongSession::default());
    for count in [1, 60, 125, 250, 500, 1_000] {
        points.push((count, long.added_at(&subject, count - 1).await?));
    }
    Ok(Curve { name: "a turn, by turns before it", unit: "ms", points })
}

fn bindings(seconds: Duration) -> Curve {
    let counts = [10, 100, 1_000, 10_000, 100_000];
    let points = counts.map(|count| (count, route::median_us(count, seconds / 5)));
    Curve { name: "a route, by bindings", unit: "us", points: points.to_vec() }
}

async fn tasks() -> anyhow::Result<Curve> {
    let mut points = Vec::new();
    for count in [100, 1_000, 10_000, 50_000] {
        points.push((count, teams::median_of(count).await?));
    }
    Ok(Curve { name: "a claim, by tasks", unit: "ms", points })
}

async fn memories(seconds: Duration) -> anyhow::Result<Curve> {
    let counts = [1_000, 10_000, 30_000, 100_000];
    let medians = memory::growth(&counts, seconds).await?;
    let points = counts.iter().zip(medians).map(|(count, cost)| Ok((usize::try_from(*count)?, cost)));
    Ok(Curve { name: "a recall, by memories", unit: "ms", points: points.collect::<anyhow::Result<_>>()? })
}
