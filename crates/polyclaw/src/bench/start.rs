//! Measures startup time, memory at rest and after work, idle CPU time and binary size.

use std::sync::Arc;
use std::time::Duration;

use crate::bench::bench_daemon::BenchDaemon;
use crate::bench::{BenchmarkReport, FigureTarget};

pub async fn run(report: &mut BenchmarkReport) -> anyhow::Result<()> {
    let mut subject = BenchDaemon::start("").await?;
    let mut best = subject.ready_after;
    for _ in 0..4 {
        best = best.min(subject.restart().await?);
    }
    report.add(
        "start to ready, existing home, best of 5",
        best.as_secs_f64() * 1000.0,
        "ms",
        Some(FigureTarget::AtMost(60.0)),
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    report.add("idle memory", subject.memory_mb()?, "MB", Some(FigureTarget::AtMost(35.0)));
    let before = subject.cpu_seconds()?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let idle = (subject.cpu_seconds()? - before) / 10.0 * 100.0;
    report.add("idle processor time", idle, "%", Some(FigureTarget::AtMost(0.5)));
    measure_restart_after_work(report, Arc::new(subject)).await?;
    #[expect(clippy::cast_precision_loss, reason = "a file size in megabytes")]
    let size = std::fs::metadata(std::env::current_exe()?)?.len() as f64 / 1e6;
    report.add("binary", size, "MB", Some(FigureTarget::AtMost(45.0)));
    Ok(())
}

/// Runs a thousand sessions of two turns each, twice. The second thousand must not use as much new memory as the
/// first.
async fn measure_restart_after_work(
    report: &mut BenchmarkReport,
    subject: Arc<BenchDaemon>,
) -> anyhow::Result<()> {
    for round in ["first", "second"] {
        let workers: Vec<_> = (0..16)
            .map(|worker| {
                let subject = Arc::clone(&subject);
                tokio::spawn(async move {
                    for n in (worker..1_000).step_by(16) {
                        subject.run_turn(&format!("{round}-{n}")).await?;
                        subject.run_turn(&format!("{round}-{n}")).await?;
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        for worker in workers {
            worker.await??;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let name = format!("memory after the {round} 1,000 sessions of 2 turns");
        report.add(name, subject.memory_mb()?, "MB", Some(FigureTarget::AtMost(80.0)));
    }
    Ok(())
}
