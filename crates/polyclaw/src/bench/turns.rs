//! What a durable turn costs over the model call inside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::bench::subject::{DirectCall, Subject};
use crate::bench::{Bar, Report, Times, rate};

pub async fn run(report: &mut Report, seconds: Duration) -> anyhow::Result<()> {
    let subject = Arc::new(Subject::start("").await?);
    added_latency(report, &subject, seconds).await?;
    long_session(report, &subject).await?;
    throughput(report, &subject, seconds).await
}

/// Direct and durable calls take turns, so that both see the same machine.
async fn added_latency(report: &mut Report, subject: &Subject, seconds: Duration) -> anyhow::Result<()> {
    let (mut direct, mut durable) = (Times::default(), Times::default());
    let call = DirectCall::after(0);
    for _ in 0..50 {
        subject.direct(&call).await?;
        subject.turn("warm").await?;
    }
    let began = Instant::now();
    let mut n = 0;
    while began.elapsed() < seconds {
        let start = Instant::now();
        subject.direct(&call).await?;
        direct.push(start.elapsed());
        // A session grows; another every 50 turns keeps the history short.
        let start = Instant::now();
        subject.turn(&format!("latency-{}", n / 50)).await?;
        durable.push(start.elapsed());
        n += 1;
    }
    let (p50, p99) = (direct.percentile(0.5), direct.percentile(0.99));
    let added = (durable.percentile(0.5) - p50, durable.percentile(0.99) - p99);
    report.add("direct call p50", p50, "ms", None);
    report.add("added latency of a turn p50", added.0, "ms", Some(Bar::AtMost(1.0)));
    report.add("added latency of a turn p99", added.1, "ms", Some(Bar::AtMost(5.0)));
    Ok(())
}

/// Turn 500 of one session against turn 1, each over a direct call with the same history.
async fn long_session(report: &mut Report, subject: &Subject) -> anyhow::Result<()> {
    let mut long = LongSession::default();
    let added = [long.added_at(subject, 0).await?, long.added_at(subject, 500).await?];
    report.add("added latency, turns 1 to 20 of a session, p50", added[0], "ms", None);
    report.add("added latency, turns 500 to 520, p50", added[1], "ms", None);
    report.add("turn 500 against turn 1", added[1] / added[0], "times", Some(Bar::AtMost(2.0)));
    Ok(())
}

/// A session that grows.
#[derive(Default)]
pub(super) struct LongSession {
    turns: usize,
}

impl LongSession {
    /// What a turn adds once there have been so many; over twenty of them.
    pub async fn added_at(&mut self, subject: &Subject, turns: usize) -> anyhow::Result<f64> {
        while self.turns < turns {
            subject.turn("long").await?;
            self.turns += 1;
        }
        let (mut direct, mut durable) = (Times::default(), Times::default());
        for _ in 0..20 {
            let call = DirectCall::after(self.turns);
            let start = Instant::now();
            subject.direct(&call).await?;
            direct.push(start.elapsed());
            let start = Instant::now();
            subject.turn("long").await?;
            durable.push(start.elapsed());
            self.turns += 1;
        }
        Ok(durable.percentile(0.5) - direct.percentile(0.5))
    }
}

async fn throughput(report: &mut Report, subject: &Arc<Subject>, seconds: Duration) -> anyhow::Result<()> {
    let (direct, _, _) = load(subject, 64, seconds, Kind::Direct).await;
    report.add("direct calls per second, 64 at once", direct, "/s", None);
    for sessions in [64, 256, 1000] {
        let (turns, errors, p99) = load(subject, sessions, seconds, Kind::Turn).await;
        let bar = (sessions == 64).then_some(Bar::AtLeast(2_000.0));
        report.add(format!("turns per second, {sessions} sessions"), turns, "/s", bar);
        if sessions == 64 {
            report.add("turns against direct calls", turns / direct, "times", Some(Bar::AtLeast(0.05)));
        }
        report.add(format!("turn p99, {sessions} sessions"), p99, "ms", None);
        report.add(format!("errors, {sessions} sessions"), errors, "", Some(Bar::AtMost(0.0)));
    }
    report.add("daemon memory after the load", subject.memory_mb()?, "MB", None);
    Ok(())
}

#[derive(Clone, Copy)]
enum Kind {
    Direct,
    Turn,
}

/// Calls as fast as they come back, from so many callers; each has a session of its own.
async fn load(subject: &Arc<Subject>, callers: usize, seconds: Duration, kind: Kind) -> (f64, f64, f64) {
    let errors = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|n| {
            let (subject, errors) = (Arc::clone(subject), Arc::clone(&errors));
            tokio::spawn(async move {
                let (mut times, call) = (Times::default(), DirectCall::after(0));
                while began.elapsed() < seconds {
                    let start = Instant::now();
                    let done = match kind {
                        Kind::Direct => subject.direct(&call).await,
                        Kind::Turn => subject.turn(&format!("load-{callers}-{n}-{}", times.len() / 20)).await,
                    };
                    match done {
                        Ok(()) => times.push(start.elapsed()),
                        Err(error) => {
                            if errors.fetch_add(1, Ordering::Relaxed) == 0 {
                                tracing::error!(%error, "a call of the benchmark failed");
                            }
                        }
                    }
                }
                times
            })
        })
        .collect();
    let mut times = Times::default();
    for task in tasks {
        times.extend(task.await.unwrap_or_default());
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of operations are small")]
    let errors = errors.load(Ordering::Relaxed) as f64;
    (rate(times.len(), began.elapsed()), errors, times.percentile(0.99))
}
