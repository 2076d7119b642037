//! The single entry point to the database.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc;

use crate::error::{Error, Result};
use crate::migrate::{LEDGER_SCHEMA, MAIN_SCHEMA, MEMORY_SCHEMA, REGISTRY_SCHEMA};
use crate::notify::NodeSignal;
use crate::pg::{self, PostgresEngine};
use crate::sqlite::{InlineSqlite, SqliteEngine};
use crate::tasks::{self, ClaimQueues, TaskClaimRequest, TaskClaimResult};
use crate::tx::Tx;
use crate::tx_body::{TxBody, TxOutput, downcast_output};
use crate::write_probe;

/// The location of the database.
#[derive(Clone, Debug)]
pub enum DbTarget {
    /// A local file, used by one process at a time.
    Sqlite(PathBuf),
    /// A server shared by any number of nodes.
    Postgres { url: String, connections: usize },
}

#[derive(Clone)]
pub struct Db(Arc<DbInner>);

struct DbInner {
    engine: DbEngine,
    /// A write failed for lack of space or permissions or because of the disk, and none has succeeded since.
    refused: AtomicBool,
    /// A corrupt page or row was found. This stays set until a backup is restored.
    damaged: AtomicBool,
    claims: ClaimQueues,
}

impl From<DbEngine> for Db {
    fn from(engine: DbEngine) -> Self {
        Self(Arc::new(DbInner {
            engine,
            refused: AtomicBool::new(false),
            damaged: AtomicBool::new(false),
            claims: ClaimQueues::default(),
        }))
    }
}

enum DbEngine {
    Sqlite(SqliteEngine),
    Inline(InlineSqlite),
    Postgres(PostgresEngine),
}

impl DbEngine {
    async fn write(&self, body: TxBody) -> Result<TxOutput> {
        match self {
            Self::Sqlite(sqlite) => sqlite.write(body).await,
            Self::Inline(inline) => inline.write(body),
            Self::Postgres(postgres) => postgres.write(body).await,
        }
    }

    async fn read(&self, body: TxBody) -> Result<TxOutput> {
        match self {
            Self::Sqlite(sqlite) => sqlite.read(body).await,
            Self::Inline(inline) => inline.write(body),
            Self::Postgres(postgres) => postgres.read(body).await,
        }
    }
}

impl DbTarget {
    /// Checks that the database is reachable. Blocks.
    pub fn check_connection(&self) -> Result<()> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres { url, .. } => pg::check_connection(url),
        }
    }
}

impl Db {
    /// Opens, migrates and checks the database. Blocks, so call it before serving.
    pub fn open(target: &DbTarget) -> Result<Self> {
        let engine = match target {
            DbTarget::Sqlite(path) => DbEngine::Sqlite(SqliteEngine::open(path, MAIN_SCHEMA)?),
            DbTarget::Postgres { url, connections } => {
                DbEngine::Postgres(PostgresEngine::open(url, *connections)?)
            }
        };
        Ok(engine.into())
    }

    /// Opens an in-memory database whose transactions run inline in the caller, for the crash simulator.
    pub fn in_memory() -> Result<Self> {
        Ok(DbEngine::Inline(InlineSqlite::open(MAIN_SCHEMA)?).into())
    }

    /// Opens the memory database, creating it if needed. Always SQLite. Blocks like `open`.
    pub fn open_memory_db(path: &Path) -> Result<Self> {
        Ok(DbEngine::Sqlite(SqliteEngine::open(path, MEMORY_SCHEMA)?).into())
    }

    /// Opens a team's task ledger, creating it if needed. Several processes may have it open.
    pub fn open_ledger(path: &Path) -> Result<Self> {
        Ok(DbEngine::Sqlite(SqliteEngine::open_shared(path, LEDGER_SCHEMA)?).into())
    }

    /// Opens an in-memory task ledger for the simulator.
    pub fn ledger_in_memory() -> Result<Self> {
        Ok(DbEngine::Inline(InlineSqlite::open(LEDGER_SCHEMA)?).into())
    }

    /// Opens the registry of a control plane, creating it if needed. Always SQLite. Blocks like `open`.
    pub fn open_registry(path: &Path) -> Result<Self> {
        Ok(DbEngine::Sqlite(SqliteEngine::open(path, REGISTRY_SCHEMA)?).into())
    }

    /// Opens an in-memory memory database for the simulator.
    pub fn memory_db_in_memory() -> Result<Self> {
        Ok(DbEngine::Inline(InlineSqlite::open(MEMORY_SCHEMA)?).into())
    }

    /// Runs one transaction. It is committed when this returns `Ok`. `body` may run again after a deadlock or a lost
    /// connection, so generated values (ids, times) must come from outside.
    pub async fn write<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        self.finish_write(self.0.engine.write(TxBody::new(body)).await)
    }

    fn finish_write<T: 'static>(&self, written: Result<TxOutput>) -> Result<T> {
        if written.as_ref().is_err_and(is_write_refusal) {
            self.0.refused.store(true, Ordering::Relaxed);
        }
        self.record_corruption(&written);
        downcast_output(written?)
    }

    fn record_corruption<T>(&self, outcome: &Result<T>) {
        if matches!(outcome, Err(Error::Corrupt(_))) {
            self.0.damaged.store(true, Ordering::Relaxed);
        }
    }

    /// Whether corruption was found since the database was opened.
    pub fn is_corrupt(&self) -> bool {
        self.0.damaged.load(Ordering::Relaxed)
    }

    /// Checks that the SQLite files are still those that were opened. May access the disk.
    pub fn check_files(&self) -> Result<()> {
        match &self.0.engine {
            DbEngine::Sqlite(sqlite) => sqlite.check_files(),
            DbEngine::Inline(_) | DbEngine::Postgres(_) => Ok(()),
        }
    }

    /// Claims the oldest free task, batched with concurrent claims.
    pub async fn claim_oldest_task(&self, claim: TaskClaimRequest) -> Result<TaskClaimResult> {
        match &self.0.engine {
            // The single writer of SQLite batches waiting transactions itself.
            DbEngine::Sqlite(_) | DbEngine::Inline(_) => {
                self.write(move |tx| tasks::claim_oldest(tx, &claim)).await
            }
            DbEngine::Postgres(_) => self.0.claims.enqueue_claim(self, claim).await,
        }
    }

    /// Runs PostgreSQL statements in autocommit mode, so that each releases its locks as soon as it is done. They may
    /// be repeated, even if they took effect before.
    pub(crate) async fn run_autocommit<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        let DbEngine::Postgres(postgres) = &self.0.engine else {
            return Err(Error::Other("only PostgreSQL has standalone statements".into()));
        };
        self.finish_write(postgres.run_autocommit(TxBody::new(body)).await)
    }

    pub(crate) fn claim_queues(&self) -> &ClaimQueues {
        &self.0.claims
    }

    /// Like `write`, but a refusal returned by `body` rolls the transaction back.
    pub async fn write_unless_refused<T, E, F>(&self, mut body: F) -> Result<std::result::Result<T, E>>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<std::result::Result<T, E>> + Send + 'static,
    {
        let (tell, receiver) = std::sync::mpsc::channel();
        let written = self.write(move |tx| {
            body(tx)?.map_err(|refusal| {
                // The receiver lives until the write is done.
                let _ = tell.send(refusal);
                Error::RolledBack
            })
        });
        match written.await {
            Err(Error::RolledBack) => receiver.try_recv().map(Err).map_err(|_| Error::RolledBack),
            written => written.map(Ok),
        }
    }

    /// Runs queries on a snapshot. Never waits for a writer.
    pub async fn read<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        let found = self.0.engine.read(TxBody::new(body)).await;
        self.record_corruption(&found);
        downcast_output(found?)
    }

    /// Returns why writes fail, if one was refused. It tries a probe write, so the state recovers automatically. Other
    /// transactions do not clear it, because one that changes nothing succeeds even on a full disk.
    pub async fn check_writes(&self) -> Result<()> {
        if !self.0.refused.load(Ordering::Relaxed) {
            return Ok(());
        }
        let file = self.sqlite_path().map(Path::to_owned);
        self.write(move |tx| write_probe::write_probe(tx, file.as_deref())).await?;
        self.0.refused.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Checkpoints the database into a single file. Blocks; call it after the last write.
    pub fn checkpoint_all(&self) -> Result<()> {
        match &self.0.engine {
            DbEngine::Sqlite(sqlite) => sqlite.checkpoint_all(),
            DbEngine::Inline(_) | DbEngine::Postgres(_) => Ok(()),
        }
    }

    /// Whether several processes may use this database.
    pub fn is_shared(&self) -> bool {
        matches!(&self.0.engine, DbEngine::Postgres(_))
    }

    pub fn engine_name(&self) -> &'static str {
        match &self.0.engine {
            DbEngine::Sqlite(_) | DbEngine::Inline(_) => "sqlite",
            DbEngine::Postgres(_) => "postgres",
        }
    }

    /// Subscribes to signals of other nodes; `None` if there can be none.
    pub fn subscribe_signals(&self) -> Option<mpsc::UnboundedReceiver<NodeSignal>> {
        match &self.0.engine {
            DbEngine::Postgres(postgres) => Some(postgres.subscribe_signals()),
            _ => None,
        }
    }

    /// Returns the SQLite file, for copies and checks.
    pub fn sqlite_path(&self) -> Option<&Path> {
        match &self.0.engine {
            DbEngine::Sqlite(sqlite) => Some(sqlite.path()),
            _ => None,
        }
    }
}

/// Errors that may go away without changing the request.
fn is_write_refusal(error: &Error) -> bool {
    matches!(error, Error::Full(_) | Error::ReadOnly(_) | Error::Unavailable { .. } | Error::FilesReplaced(_))
}
