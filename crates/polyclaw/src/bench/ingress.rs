//! Measures messages made durable per second over HTTP while turns wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclaw_api::messages::NewSessionMessage;

use crate::bench::bench_daemon::BenchDaemon;
use crate::bench::{BenchmarkReport, FigureTarget, OperationTimes, per_second};

const SENDER_COUNT: usize = 64;

/// Uses one lane slot, because this benchmark measures how fast messages are accepted, not answered.
pub async fn run(report: &mut BenchmarkReport, seconds: Duration) -> anyhow::Result<()> {
    let subject = Arc::new(BenchDaemon::start("[lanes]\nmain = 1\n").await?);
    subject.model.answer_with(|_| {
        polyclaw_testkit::model_server::ReplyScript::reply("ok").wait(Duration::from_secs(1))
    });
    let began = Instant::now();
    let senders: Vec<_> = (0..SENDER_COUNT)
        .map(|n| {
            let subject = Arc::clone(&subject);
            tokio::spawn(async move { send_messages(&subject, n, began, seconds).await })
        })
        .collect();
    let mut times = OperationTimes::default();
    for sender in senders {
        times.extend(sender.await??);
    }
    let accepted = per_second(times.len(), began.elapsed());
    report.add(
        "accepted messages per second, 64 senders",
        accepted,
        "/s",
        Some(FigureTarget::AtLeast(5_000.0)),
    );
    report.add("accept p50", times.percentile(0.5), "ms", None);
    report.add("accept p99", times.percentile(0.99), "ms", None);
    Ok(())
}

async fn send_messages(
    subject: &BenchDaemon,
    sender: usize,
    began: Instant,
    seconds: Duration,
) -> anyhow::Result<OperationTimes> {
    let mut times = OperationTimes::default();
    let body = NewSessionMessage::from_text("a message of ordinary length, as people write them");
    while began.elapsed() < seconds {
        let peer = format!("s{sender}-{}", times.len() / 40);
        let path = format!("/api/v1/sessions/agent%3Amain%3Aweb%3Adm%3A{peer}/messages");
        let start = Instant::now();
        subject.post(&path, &body).await?;
        times.push(start.elapsed());
    }
    Ok(times)
}
