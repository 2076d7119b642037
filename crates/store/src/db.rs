//! The one door to the database.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc;

use crate::body::{Body, Value, opened};
use crate::error::{Error, Result};
use crate::live::Signal;
use crate::migrate::{BRAIN, LEDGER, MAIN, REGISTRY};
use crate::pg::{self, Postgres};
use crate::probe;
use crate::sqlite::{Inline, Sqlite};
use crate::tasks::{self, Claim, Claimed, Lines};
use crate::tx::Tx;

/// Where the data lives.
#[derive(Clone, Debug)]
pub enum Target {
    /// A file of its own, one process at a time.
    Sqlite(PathBuf),
    /// Any number of nodes.
    Postgres { url: String, connections: usize },
}

#[derive(Clone)]
pub struct Db(Arc<Opened>);

struct Opened {
    engine: Engine,
    /// A write was refused for want of space, of rights or of a disk that works, and none was seen to work since.
    refused: AtomicBool,
    /// A page or a row was found that makes no sense: it stays so until somebody restores a backup.
    damaged: AtomicBool,
    claims: Lines,
}

impl From<Engine> for Db {
    fn from(engine: Engine) -> Self {
        Self(Arc::new(Opened {
            engine,
            refused: AtomicBool::new(false),
            damaged: AtomicBool::new(false),
            claims: Lines::default(),
        }))
    }
}

enum Engine {
    Sqlite(Sqlite),
    Inline(Inline),
    Postgres(Postgres),
}

impl Engine {
    async fn write(&self, body: Body) -> Result<Value> {
        match self {
            Self::Sqlite(sqlite) => sqlite.write(body).await,
            Self::Inline(inline) => inline.write(body),
            Self::Postgres(postgres) => postgres.write(body).await,
        }
    }

    async fn read(&self, body: Body) -> Result<Value> {
        match self {
            Self::Sqlite(sqlite) => sqlite.read(body).await,
            Self::Inline(inline) => inline.write(body),
            Self::Postgres(postgres) => postgres.read(body).await,
        }
    }
}

impl Target {
    /// Whether the database can be reached at all. Blocks.
    pub fn reach(&self) -> Result<()> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres { url, .. } => pg::reach(url),
        }
    }
}

impl Db {
    /// Opens, migrates and checks the database. Blocks: call it before serving.
    pub fn open(target: &Target) -> Result<Self> {
        let engine = match target {
            Target::Sqlite(path) => Engine::Sqlite(Sqlite::open(path, MAIN)?),
            Target::Postgres { url, connections } => Engine::Postgres(Postgres::open(url, *connections)?),
        };
        Ok(engine.into())
    }

    /// A database in memory whose transactions run at once in the caller: the crash simulator's disk.
    pub fn in_memory() -> Result<Self> {
        Ok(Engine::Inline(Inline::open(MAIN)?).into())
    }

    /// The file of memories, made if it is not there. Always SQLite. Blocks, as `open` does.
    pub fn open_brain(path: &Path) -> Result<Self> {
        Ok(Engine::Sqlite(Sqlite::open(path, BRAIN)?).into())
    }

    /// The file of a team's tasks, made if it is not there. Several processes may have it open.
    pub fn open_ledger(path: &Path) -> Result<Self> {
        Ok(Engine::Sqlite(Sqlite::open_shared(path, LEDGER)?).into())
    }

    /// A team's tasks in memory, for the simulator.
    pub fn ledger_in_memory() -> Result<Self> {
        Ok(Engine::Inline(Inline::open(LEDGER)?).into())
    }

    /// The registry of a control plane, made if it is not there. Always SQLite. Blocks, as `open` does.
    pub fn open_registry(path: &Path) -> Result<Self> {
        Ok(Engine::Sqlite(Sqlite::open(path, REGISTRY)?).into())
    }

    /// Memories in memory, for the simulator.
    pub fn brain_in_memory() -> Result<Self> {
        Ok(Engine::Inline(Inline::open(BRAIN)?).into())
    }

    /// Runs one transaction. When this returns `Ok`, it is committed. `body` may be run again after a
    /// deadlock or a lost connection, so everything it makes up (ids, times) comes from outside.
    pub async fn write<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        self.watched(self.0.engine.write(Body::new(body)).await)
    }

    fn watched<T: 'static>(&self, written: Result<Value>) -> Result<T> {
        if written.as_ref().is_err_and(is_refusal) {
            self.0.refused.store(true, Ordering::Relaxed);
        }
        self.note_damage(&written);
        opened(written?)
    }

    fn note_damage<T>(&self, outcome: &Result<T>) {
        if matches!(outcome, Err(Error::Corrupt(_))) {
            self.0.damaged.store(true, Ordering::Relaxed);
        }
    }

    /// Damage was met since the database was opened.
    pub fn is_damaged(&self) -> bool {
        self.0.damaged.load(Ordering::Relaxed)
    }

    /// Whether the files of SQLite are still those that were opened. May look at the disk.
    pub fn check_files(&self) -> Result<()> {
        match &self.0.engine {
            Engine::Sqlite(sqlite) => sqlite.check_files(),
            Engine::Inline(_) | Engine::Postgres(_) => Ok(()),
        }
    }

    /// Takes the oldest task that is free, together with whoever asks for one at the same time.
    pub async fn claim(&self, claim: Claim) -> Result<Claimed> {
        match &self.0.engine {
            // Its one writer writes whatever waits together, and has nobody to step over.
            Engine::Sqlite(_) | Engine::Inline(_) => {
                self.write(move |tx| tasks::claim_oldest(tx, &claim)).await
            }
            Engine::Postgres(_) => self.0.claims.join(self, claim).await,
        }
    }

    /// Runs statements of PostgreSQL that are each a transaction of their own: with no beginning and no end to wait for, what
    /// they lock is free as soon as they are done. They may be run again, whether or not they came to something before.
    pub(crate) async fn once<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        let Engine::Postgres(postgres) = &self.0.engine else {
            return Err(Error::Other("only PostgreSQL has statements that stand alone".into()));
        };
        self.watched(postgres.once(Body::new(body)).await)
    }

    pub(crate) fn claims(&self) -> &Lines {
        &self.0.claims
    }

    /// The same, where a refusal takes back what was written before it.
    pub async fn write_unless_refused<T, E, F>(&self, mut body: F) -> Result<std::result::Result<T, E>>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<std::result::Result<T, E>> + Send + 'static,
    {
        let (tell, told) = std::sync::mpsc::channel();
        let written = self.write(move |tx| {
            body(tx)?.map_err(|refusal| {
                // Whoever asks is there until this is done.
                let _ = tell.send(refusal);
                Error::TakenBack
            })
        });
        match written.await {
            Err(Error::TakenBack) => told.try_recv().map(Err).map_err(|_| Error::TakenBack),
            written => written.map(Ok),
        }
    }

    /// Runs queries on a snapshot; never waits for a writer.
    pub async fn read<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        let found = self.0.engine.read(Body::new(body)).await;
        self.note_damage(&found);
        opened(found?)
    }

    /// Why nothing can be written, where a write was refused: then one is tried, so that the trouble ends by itself.
    /// A transaction that changes nothing works on a full disk too, so only this one tells that it is over.
    pub async fn check_writes(&self) -> Result<()> {
        if !self.0.refused.load(Ordering::Relaxed) {
            return Ok(());
        }
        let file = self.file().map(Path::to_owned);
        self.write(move |tx| probe::write(tx, file.as_deref())).await?;
        self.0.refused.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Leaves the database as one file that holds everything. Blocks: call it when nobody writes any more.
    pub fn settle(&self) -> Result<()> {
        match &self.0.engine {
            Engine::Sqlite(sqlite) => sqlite.settle(),
            Engine::Inline(_) | Engine::Postgres(_) => Ok(()),
        }
    }

    /// Several processes may work on this database.
    pub fn is_shared(&self) -> bool {
        matches!(&self.0.engine, Engine::Postgres(_))
    }

    pub fn engine(&self) -> &'static str {
        match &self.0.engine {
            Engine::Sqlite(_) | Engine::Inline(_) => "sqlite",
            Engine::Postgres(_) => "postgres",
        }
    }

    /// Wake-ups of other nodes; `None` where there can be none.
    pub fn signals(&self) -> Option<mpsc::UnboundedReceiver<Signal>> {
        match &self.0.engine {
            Engine::Postgres(postgres) => Some(postgres.signals()),
            _ => None,
        }
    }

    /// The SQLite file, for copies and checks.
    pub fn file(&self) -> Option<&Path> {
        match &self.0.engine {
            Engine::Sqlite(sqlite) => Some(sqlite.path()),
            _ => None,
        }
    }
}

/// What may be over later without anybody changing what is asked.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Full(_) | Error::ReadOnly(_) | Error::Unavailable { .. } | Error::FilesReplaced(_))
}
