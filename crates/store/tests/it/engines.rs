//! A fresh database of each kind, and a runtime to drive a check on it. Opening blocks, so it comes first.

use std::path::PathBuf;

use polyclaw_store::{Db, DbTarget, Result};
use polyclaw_testkit::postgres::PostgresCluster;
use tempfile::TempDir;

pub fn drive<F: Future<Output = Result<()>>>(check: F) {
    answer(check).unwrap();
}

pub fn answer<T>(asked: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(asked)
}

pub fn on_sqlite<F: Future<Output = Result<()>>>(check: impl FnOnce(Db) -> F) {
    let file = File::new();
    drive(check(file.open().unwrap()));
}

pub fn in_memory<F: Future<Output = Result<()>>>(check: impl FnOnce(Db) -> F) {
    drive(check(Db::in_memory().unwrap()));
}

pub fn on_ledger_file<F: Future<Output = Result<()>>>(check: impl FnOnce(Db) -> F) {
    let folder = tempfile::tempdir().unwrap();
    drive(check(Db::open_ledger(&folder.path().join("ledger.db")).unwrap()));
}

pub fn on_postgres<F: Future<Output = Result<()>>>(check: impl FnOnce(Db) -> F) {
    drive(check(Shared::new().open().unwrap()));
}

/// A SQLite file that can be opened more than once.
pub struct File(TempDir);

impl File {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> PathBuf {
        self.0.path().join("sessions.db")
    }

    pub fn open(&self) -> Result<Db> {
        Db::open(&DbTarget::Sqlite(self.path()))
    }
}

/// A PostgreSQL database that several nodes can open.
pub struct Shared {
    pub url: String,
}

impl Shared {
    pub fn new() -> Self {
        Self { url: PostgresCluster::for_process().fresh_database().unwrap() }
    }

    pub fn open(&self) -> Result<Db> {
        Db::open(&DbTarget::Postgres { url: self.url.clone(), connections: 4 })
    }
}
