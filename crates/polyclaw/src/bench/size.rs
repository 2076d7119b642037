//! What a database with many sessions costs, against an empty one.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::bench::subject::{DirectCall, Subject};
use crate::bench::{Bar, Report, Times};

const SESSIONS: usize = 100_000;
const CALLERS: usize = 64;

/// The sessions are made as people make them: by a turn each.
pub async fn run(report: &mut Report, seconds: Duration) -> anyhow::Result<()> {
    let mut subject = Arc::new(Subject::start("").await?);
    let empty = added(&subject, "empty", seconds).await?;
    fill(&subject, 0..SESSIONS).await?;
    let full = added(&subject, "full", seconds).await?;
    report.add("added latency of a turn, empty database, p50", empty, "ms", None);
    report.add("added latency of a turn, 100,000 sessions, p50", full, "ms", None);
    report.add("100,000 sessions against an empty database", full / empty, "times", Some(Bar::AtMost(1.5)));
    if let Some(subject) = Arc::get_mut(&mut subject) {
        let ready = subject.restart().await?.as_secs_f64() * 1000.0;
        report.add("start to ready, 100,000 sessions, after SIGKILL", ready, "ms", Some(Bar::AtMost(500.0)));
    }
    Ok(())
}

/// A turn accepts, claims and finishes. Every one is in a session of its own, as those before it were.
pub(super) async fn added(subject: &Subject, name: &str, seconds: Duration) -> anyhow::Result<f64> {
    let (mut direct, mut durable) = (Times::default(), Times::default());
    let call = DirectCall::after(0);
    let began = Instant::now();
    while began.elapsed() < seconds {
        let start = Instant::now();
        subject.direct(&call).await?;
        direct.push(start.elapsed());
        let start = Instant::now();
        subject.turn(&format!("{name}-{}", durable.len())).await?;
        durable.push(start.elapsed());
    }
    Ok(durable.percentile(0.5) - direct.percentile(0.5))
}

pub(super) async fn fill(subject: &Arc<Subject>, sessions: Range<usize>) -> anyhow::Result<()> {
    let (next, end) = (Arc::new(AtomicUsize::new(sessions.start)), sessions.end);
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (subject, next) = (Arc::clone(subject), Arc::clone(&next));
            tokio::spawn(async move {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= end {
                        return anyhow::Ok(());
                    }
                    subject.turn(&format!("stored-{n}")).await?;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    Ok(())
}
