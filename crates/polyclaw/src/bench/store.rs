//! Measures small transactions per second through the single writer, from many callers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::time::Millis;
use polyclaw_store::{Db, DbTarget, events};
use serde_json::json;

use crate::bench::{BenchmarkReport, FigureTarget, OperationTimes, per_second};

const CALLER_COUNT: usize = 64;

pub async fn run(report: &mut BenchmarkReport, seconds: Duration) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let db = Arc::new(Db::open(&DbTarget::Sqlite(folder.path().join("bench.db")))?);
    let began = Instant::now();
    let callers: Vec<_> = (0..CALLER_COUNT)
        .map(|_| {
            let db = Arc::clone(&db);
            tokio::spawn(async move { time_writes(&db, began, seconds).await })
        })
        .collect();
    let mut times = OperationTimes::default();
    for caller in callers {
        times.extend(caller.await??);
    }
    let done = per_second(times.len(), began.elapsed());
    report.add(
        "store transactions per second, 64 callers",
        done,
        "/s",
        Some(FigureTarget::AtLeast(20_000.0)),
    );
    report.add("store transaction p99", times.percentile(0.99), "ms", Some(FigureTarget::AtMost(10.0)));
    Ok(())
}

async fn time_writes(db: &Db, began: Instant, seconds: Duration) -> polyclaw_store::Result<OperationTimes> {
    let mut times = OperationTimes::default();
    while began.elapsed() < seconds {
        let event = NewEvent {
            kind: EventKind::MessageWaiting,
            session: None,
            turn: None,
            agent: None,
            trace: None,
            data: json!({ "waiting": 1 }),
        };
        let start = Instant::now();
        db.write(move |tx| events::record(tx, &event, Millis(1))).await?;
        times.push(start.elapsed());
    }
    Ok(times)
}
