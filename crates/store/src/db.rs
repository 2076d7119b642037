//! The one door to the database.

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

/// Where the data lives.
#[derive(Clone, Debug)]
pub enum DbTarget {
    /// A file of its own, one process at a time.
    Sqlite(PathBuf),
    /// Any number of nodes.
    Postgres { url: String, connections: usize },
}

#[derive(Clone)]
pub struct Db(Arc<DbInner>);

struct DbInner {
    engine: DbEngine,
    /// A write was refused for want of space, of rights or of a disk that works, and none was seen to work since.
    refused: AtomicBool,
    /// A page or a row was found that makes no sense: it stays so until somebody restores a backup.
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
    /// Whether the database can be reached at all. Blocks.
    pub fn check_connection(&self) -> Result<()> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres { url, .. } => pg::check_connection(url),
        }
    }
}

impl Db {
    /// Opens, migrates and checks the database. Blocks: call it before serving.
    pub fn open(target: &DbTarget) -> Result<Self> {
        let engine = match target {
            DbTarget::Sqlite(path) => DbEngine::Sqlite(SqliteEngine::open(path, MAIN_SCHEMA)?),
            DbTarget::Postgres { url, connections } => {
                DbEngine::Postgres(PostgresEngine::open(url, *connections)?)
            }
        };
        Ok(engine.into())
    }

    /// A database in memory whose transactions run at once in the caller: the crash simulator's disk.
    pub fn in_memory() -> Result<Self> {
        Ok(DbEngine::Inline(InlineSqlite::open(MAIN_SCHEMA)?).into())
    }

    /// The file of memories, made if it is not there. Always SQLite. Blocks, as `open` does.
    pub fn open_memory_db(path: &Path) -> Result<Self> {
        Ok(DbEngine::Sqlite(SqliteEngine::open(path, MEMORY_SCHEMA)?).into())
    }

    /// The file of a team's tasks, made if it is not there. Several processes may have it open.
    pub fn open_ledger(path: &Path) -> Result<Self> {
        Ok(DbEngine::Sqlite(SqliteEngine::open_shared(path, LEDGER_SCHEMA)?).into())
    }

    /// A team's tasks in memory, for the simulator.
    pub fn ledger_in_memory() -> Result<Self> {
        Ok(DbEngine::Inline(InlineSqlite::open(LEDGER_SCHEMA)?).into())
    }

    /// The registry of a control plane, made if it is not there. Always SQLite. Blocks, as `open` does.
    pub fn open_registry(path: &Path) -> Result<Self> {
        Ok(DbEngine::Sqlite(SqliteEngine::open(path, REGISTRY_SCHEMA)?).into())
    }

    /// Memories in memory, for the simulator.
    pub fn memory_db_in_memory() -> Result<Self> {
        Ok(DbEngine::Inline(InlineSqlite::open(MEMORY_SCHEMA)?).into())
    }

    /// Runs one transaction. When this returns `Ok`, it is committed. `body` may be run again after a
    /// deadlock or a lost connection, so everything it makes up (ids, times) comes from outside.
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

    /// Damage was met since the database was opened.
    pub fn is_corrupt(&self) -> bool {
        self.0.damaged.load(Ordering::Relaxed)
    }

    /// Whether the files of SQLite are still those that were opened. May look at the disk.
    pub fn check_files(&self) -> Result<()> {
        match &self.0.engine {
            DbEngine::Sqlite(sqlite) => sqlite.check_files(),
            DbEngine::Inline(_) | DbEngine::Postgres(_) => Ok(()),
        }
    }

    /// Takes the oldest task that is free, together with whoever asks for one at the same time.
    pub async fn claim_oldest_task(&self, claim: TaskClaimRequest) -> Result<TaskClaimResult> {
        match &self.0.engine {
            // Its one writer writes whatever waits together, and has nobody to step over.
            DbEngine::Sqlite(_) | DbEngine::Inline(_) => {
                self.write(move |tx| tasks::claim_oldest(tx, &claim)).await
            }
            DbEngine::Postgres(_) => self.0.claims.enqueue_claim(self, claim).await,
        }
    }

    /// Runs statements of PostgreSQL that are each a transaction of their own: with no beginning and no end to wait for, what
    /// they lock is free as soon as they are done. They may be run again, whether or not they came to something before.
    pub(crate) async fn run_autocommit<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        let DbEngine::Postgres(postgres) = &self.0.engine else {
            return Err(Error::Other("only PostgreSQL has statements that stand alone".into()));
        };
        self.finish_write(postgres.run_autocommit(TxBody::new(body)).await)
    }

    pub(crate) fn claim_queues(&self) -> &ClaimQueues {
        &self.0.claims
    }

    /// The same, where a refusal takes back what was written before it.
    pub async fn write_unless_refused<T, E, F>(&self, mut body: F) -> Result<std::result::Result<T, E>>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<std::result::Result<T, E>> + Send + 'static,
    {
        let (tell, receiver) = std::sync::mpsc::channel();
        let written = self.write(move |tx| {
            body(tx)?.map_err(|refusal| {
                // Whoever asks is there until this is done.
                let _ = tell.send(refusal);
                Error::RolledBack
            })
        });
        match written.await {
            Err(Error::RolledBack) => receiver.try_recv().map(Err).map_err(|_| Error::RolledBack),
            written => written.map(Ok),
        }
    }

    /// Runs queries on a snapshot; never waits for a writer.
    pub async fn read<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        let found = self.0.engine.read(TxBody::new(body)).await;
        self.record_corruption(&found);
        downcast_output(found?)
    }

    /// Why nothing can be written, where a write was refused: then one is tried, so that the trouble ends by itself.
    /// A transaction that changes nothing works on a full disk too, so only this one tells that it is over.
    pub async fn check_writes(&self) -> Result<()> {
        if !self.0.refused.load(Ordering::Relaxed) {
            return Ok(());
        }
        let file = self.sqlite_path().map(Path::to_owned);
        self.write(move |tx| write_probe::write_probe(tx, file.as_deref())).await?;
        self.0.refused.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Leaves the database as one file that holds everything. Blocks: call it when nobody writes any more.
    pub fn checkpoint_all(&self) -> Result<()> {
        match &self.0.engine {
            DbEngine::Sqlite(sqlite) => sqlite.checkpoint_all(),
            DbEngine::Inline(_) | DbEngine::Postgres(_) => Ok(()),
        }
    }

    /// Several processes may work on this database.
    pub fn is_shared(&self) -> bool {
        matches!(&self.0.engine, DbEngine::Postgres(_))
    }

    pub fn engine_name(&self) -> &'static str {
        match &self.0.engine {
            DbEngine::Sqlite(_) | DbEngine::Inline(_) => "sqlite",
            DbEngine::Postgres(_) => "postgres",
        }
    }

    /// Wake-ups of other nodes; `None` where there can be none.
    pub fn subscribe_signals(&self) -> Option<mpsc::UnboundedReceiver<NodeSignal>> {
        match &self.0.engine {
            DbEngine::Postgres(postgres) => Some(postgres.subscribe_signals()),
            _ => None,
        }
    }

    /// The SQLite file, for copies and checks.
    pub fn sqlite_path(&self) -> Option<&Path> {
        match &self.0.engine {
            DbEngine::Sqlite(sqlite) => Some(sqlite.path()),
            _ => None,
        }
    }
}

/// What may be over later without anybody changing what is asked.
fn is_write_refusal(error: &Error) -> bool {
    matches!(error, Error::Full(_) | Error::ReadOnly(_) | Error::Unavailable { .. } | Error::FilesReplaced(_))
}
