//! Compares a database with many sessions to an empty one.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::bench::bench_daemon::{BenchDaemon, DirectCall};
use crate::bench::{BenchmarkReport, FigureTarget, OperationTimes};

const SESSION_COUNT: usize = 100_000;
const CALLER_COUNT: usize = 64;

/// Creates each session with a turn, as people do.
pub async fn run(report: &mut BenchmarkReport, seconds: Duration) -> anyhow::Result<()> {
    let mut subject = Arc::new(BenchDaemon::start("").await?);
    let empty = added_turn_latency(&subject, "empty", seconds).await?;
    create_sessions(&subject, 0..SESSION_COUNT).await?;
    let full = added_turn_latency(&subject, "full", seconds).await?;
    report.add("added latency of a turn, empty database, p50", empty, "ms", None);
    report.add("added latency of a turn, 100,000 sessions, p50", full, "ms", None);
    report.add(
        "100,000 sessions relative to an empty database",
        full / empty,
        "times",
        Some(FigureTarget::AtMost(1.5)),
    );
    if let Some(subject) = Arc::get_mut(&mut subject) {
        let ready = subject.restart().await?.as_secs_f64() * 1000.0;
        report.add(
            "start to ready, 100,000 sessions, after SIGKILL",
            ready,
            "ms",
            Some(FigureTarget::AtMost(500.0)),
        );
    }
    Ok(())
}

/// Returns the latency that a turn adds to a direct call. Each turn is in its own session.
pub(super) async fn added_turn_latency(
    subject: &BenchDaemon,
    name: &str,
    seconds: Duration,
) -> anyhow::Result<f64> {
    let (mut direct, mut durable) = (OperationTimes::default(), OperationTimes::default());
    let call = DirectCall::after_turns(0);
    let began = Instant::now();
    while began.elapsed() < seconds {
        let start = Instant::now();
        subject.call_model(&call).await?;
        direct.push(start.elapsed());
        let start = Instant::now();
        subject.run_turn(&format!("{name}-{}", durable.len())).await?;
        durable.push(start.elapsed());
    }
    Ok(durable.percentile(0.5) - direct.percentile(0.5))
}

pub(super) async fn create_sessions(
    subject: &Arc<BenchDaemon>,
    sessions: Range<usize>,
) -> anyhow::Result<()> {
    let (next, end) = (Arc::new(AtomicUsize::new(sessions.start)), sessions.end);
    let callers: Vec<_> = (0..CALLER_COUNT)
        .map(|_| {
            let (subject, next) = (Arc::clone(subject), Arc::clone(&next));
            tokio::spawn(async move {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= end {
                        return anyhow::Ok(());
                    }
                    subject.run_turn(&format!("stored-{n}")).await?;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    Ok(())
}
