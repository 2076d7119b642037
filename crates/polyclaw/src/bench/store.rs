//! Small transactions per second through the one writer, from many callers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::time::Millis;
use polyclaw_store::{Db, DbTarget, events};
use serde_json::json;

use crate::bench::{Bar, Report, Times, rate};

const CALLERS: usize = 64;

pub async fn run(report: &mut Report, seconds: Duration) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let db = Arc::new(Db::open(&DbTarget::Sqlite(folder.path().join("bench.db")))?);
    let began = Instant::now();
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let db = Arc::clone(&db);
            tokio::spawn(async move { call(&db, began, seconds).await })
        })
        .collect();
    let mut times = Times::default();
    for caller in callers {
        times.extend(caller.await??);
    }
    let done = rate(times.len(), began.elapsed());
    report.add("store transactions per second, 64 callers", done, "/s", Some(Bar::AtLeast(20_000.0)));
    report.add("store transaction p99", times.percentile(0.99), "ms", Some(Bar::AtMost(10.0)));
    Ok(())
}

async fn call(db: &Db, began: Instant, seconds: Duration) -> polyclaw_store::Result<Times> {
    let mut times = Times::default();
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
