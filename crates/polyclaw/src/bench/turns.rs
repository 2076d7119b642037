//! Measures the cost of a durable turn over the model call inside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::bench::bench_daemon::{BenchDaemon, DirectCall};
use crate::bench::{BenchmarkReport, FigureTarget, OperationTimes, per_second};

pub async fn run(report: &mut BenchmarkReport, seconds: Duration) -> anyhow::Result<()> {
    let subject = Arc::new(BenchDaemon::start("").await?);
    measure_added_latency(report, &subject, seconds).await?;
    measure_long_session(report, &subject).await?;
    measure_throughput(report, &subject, seconds).await
}

/// Alternates direct and durable calls, so that both run under the same conditions.
async fn measure_added_latency(
    report: &mut BenchmarkReport,
    subject: &BenchDaemon,
    seconds: Duration,
) -> anyhow::Result<()> {
    let (mut direct, mut durable) = (OperationTimes::default(), OperationTimes::default());
    let call = DirectCall::after_turns(0);
    for _ in 0..50 {
        subject.call_model(&call).await?;
        subject.run_turn("warm").await?;
    }
    let began = Instant::now();
    let mut n = 0;
    while began.elapsed() < seconds {
        let start = Instant::now();
        subject.call_model(&call).await?;
        direct.push(start.elapsed());
        // A session grows; a new one every 50 turns keeps the history short.
        let start = Instant::now();
        subject.run_turn(&format!("latency-{}", n / 50)).await?;
        durable.push(start.elapsed());
        n += 1;
    }
    let (p50, p99) = (direct.percentile(0.5), direct.percentile(0.99));
    let added = (durable.percentile(0.5) - p50, durable.percentile(0.99) - p99);
    report.add("direct call p50", p50, "ms", None);
    report.add("added latency of a turn p50", added.0, "ms", Some(FigureTarget::AtMost(1.0)));
    report.add("added latency of a turn p99", added.1, "ms", Some(FigureTarget::AtMost(5.0)));
    Ok(())
}

/// Compares turn 500 of one session with turn 1, each relative to a direct call with the same history.
async fn measure_long_session(report: &mut BenchmarkReport, subject: &BenchDaemon) -> anyhow::Result<()> {
    let mut long = LongSession::default();
    let added = [long.added_latency_at(subject, 0).await?, long.added_latency_at(subject, 500).await?];
    report.add("added latency, turns 1 to 20 of a session, p50", added[0], "ms", None);
    report.add("added latency, turns 500 to 520, p50", added[1], "ms", None);
    report.add("turn 500 relative to turn 1", added[1] / added[0], "times", Some(FigureTarget::AtMost(2.0)));
    Ok(())
}

/// A session that grows.
#[derive(Default)]
pub(super) struct LongSession {
    turns: usize,
}

impl LongSession {
    /// Returns the median latency that 20 turns add, once the session has `turns` turns.
    pub async fn added_latency_at(&mut self, subject: &BenchDaemon, turns: usize) -> anyhow::Result<f64> {
        while self.turns < turns {
            subject.run_turn("long").await?;
            self.turns += 1;
        }
        let (mut direct, mut durable) = (OperationTimes::default(), OperationTimes::default());
        for _ in 0..20 {
            let call = DirectCall::after_turns(self.turns);
            let start = Instant::now();
            subject.call_model(&call).await?;
            direct.push(start.elapsed());
            let start = Instant::now();
            subject.run_turn("long").await?;
            durable.push(start.elapsed());
            self.turns += 1;
        }
        Ok(durable.percentile(0.5) - direct.percentile(0.5))
    }
}

async fn measure_throughput(
    report: &mut BenchmarkReport,
    subject: &Arc<BenchDaemon>,
    seconds: Duration,
) -> anyhow::Result<()> {
    let (direct, _, _) = run_load(subject, 64, seconds, CallKind::Direct).await;
    report.add("direct calls per second, 64 concurrent", direct, "/s", None);
    for sessions in [64, 256, 1000] {
        let (turns, errors, p99) = run_load(subject, sessions, seconds, CallKind::Turn).await;
        let bar = (sessions == 64).then_some(FigureTarget::AtLeast(2_000.0));
        report.add(format!("turns per second, {sessions} sessions"), turns, "/s", bar);
        if sessions == 64 {
            report.add(
                "turns relative to direct calls",
                turns / direct,
                "times",
                Some(FigureTarget::AtLeast(0.05)),
            );
        }
        report.add(format!("turn p99, {sessions} sessions"), p99, "ms", None);
        report.add(format!("errors, {sessions} sessions"), errors, "", Some(FigureTarget::AtMost(0.0)));
    }
    report.add("daemon memory after the load", subject.memory_mb()?, "MB", None);
    Ok(())
}

#[derive(Clone, Copy)]
enum CallKind {
    Direct,
    Turn,
}

/// Makes calls as fast as possible from this many callers, each with its own session.
async fn run_load(
    subject: &Arc<BenchDaemon>,
    callers: usize,
    seconds: Duration,
    kind: CallKind,
) -> (f64, f64, f64) {
    let errors = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|n| {
            let (subject, errors) = (Arc::clone(subject), Arc::clone(&errors));
            tokio::spawn(async move {
                let (mut times, call) = (OperationTimes::default(), DirectCall::after_turns(0));
                while began.elapsed() < seconds {
                    let start = Instant::now();
                    let done = match kind {
                        CallKind::Direct => subject.call_model(&call).await,
                        CallKind::Turn => {
                            subject.run_turn(&format!("load-{callers}-{n}-{}", times.len() / 20)).await
                        }
                    };
                    match done {
                        Ok(()) => times.push(start.elapsed()),
                        Err(error) => {
                            if errors.fetch_add(1, Ordering::Relaxed) == 0 {
                                tracing::error!(%error, "benchmark call failed");
                            }
                        }
                    }
                }
                times
            })
        })
        .collect();
    let mut times = OperationTimes::default();
    for task in tasks {
        times.extend(task.await.unwrap_or_default());
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of operations are small")]
    let errors = errors.load(Ordering::Relaxed) as f64;
    (per_second(times.len(), began.elapsed()), errors, times.percentile(0.99))
}
