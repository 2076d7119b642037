//! Many sessions at once for a long time: no error, and memory that does not grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::bench::subject::Subject;
use crate::bench::{Bar, Report, rate};

const SESSIONS: usize = 500;

pub async fn run(report: &mut Report, seconds: Duration) -> anyhow::Result<()> {
    let subject = Arc::new(Subject::start("").await?);
    let (done, errors) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let began = Instant::now();
    let callers: Vec<_> = (0..SESSIONS)
        .map(|n| {
            let (subject, done, errors) = (Arc::clone(&subject), Arc::clone(&done), Arc::clone(&errors));
            tokio::spawn(async move {
                while began.elapsed() < seconds {
                    match subject.turn(&format!("soak-{n}-{}", began.elapsed().as_secs() / 30)).await {
                        Ok(()) => done.fetch_add(1, Ordering::Relaxed),
                        Err(error) => {
                            tracing::error!(%error, "a call of the benchmark failed");
                            errors.fetch_add(1, Ordering::Relaxed)
                        }
                    };
                }
            })
        })
        .collect();
    for quarter in 1..=4 {
        tokio::time::sleep_until((began + seconds * quarter / 4).into()).await;
        report.add(format!("memory after {quarter} of 4 quarters"), subject.memory_mb()?, "MB", None);
    }
    for caller in callers {
        caller.await?;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of operations are small")]
    let errors = errors.load(Ordering::Relaxed) as f64;
    report.add("errors, 500 sessions", errors, "", Some(Bar::AtMost(0.0)));
    report.add(
        "turns per second, 500 sessions",
        rate(done.load(Ordering::Relaxed), began.elapsed()),
        "/s",
        None,
    );
    Ok(())
}
