//! One check on both databases, in real time, with bounded waits.

use std::time::Duration;

use polyclaw_store::{Db, DbTarget};
use polyclaw_testkit::postgres::PostgresCluster;

use crate::teams::fixture::drive;

pub fn on_sqlite<F: Future<Output = ()>>(check: impl FnOnce(Db) -> F) {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(&DbTarget::Sqlite(folder.path().join("sessions.db"))).unwrap();
    drive(async { check(db).await });
}

pub fn on_postgres<F: Future<Output = ()>>(check: impl FnOnce(Db) -> F) {
    let url = PostgresCluster::for_process().fresh_database().unwrap();
    let db = Db::open(&DbTarget::Postgres { url, connections: 4 }).unwrap();
    drive(async { check(db).await });
}

/// Waits until something holds, and fails with what it was waiting for.
pub async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    for _ in 0..2_000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("in vain: {what}");
}

macro_rules! on_both_databases {
    ($($check:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $check() { crate::both::on_sqlite(super::$check); })*
        }

        mod on_postgres {
            $(#[test] fn $check() { crate::both::on_postgres(super::$check); })*
        }
    };
}
pub(crate) use on_both_databases;
