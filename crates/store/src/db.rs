//! The one door to the database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::error::Result;
use crate::live::Signal;
use crate::migrate::{BRAIN, LEDGER, MAIN, REGISTRY};
use crate::pg::Postgres;
use crate::sqlite::{Inline, Sqlite};
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
pub struct Db(Arc<Engine>);

enum Engine {
    Sqlite(Sqlite),
    Inline(Inline),
    Postgres(Postgres),
}

impl Db {
    /// Opens, migrates and checks the database. Blocks: call it before serving.
    pub fn open(target: &Target) -> Result<Self> {
        let engine = match target {
            Target::Sqlite(path) => Engine::Sqlite(Sqlite::open(path, MAIN)?),
            Target::Postgres { url, connections } => Engine::Postgres(Postgres::open(url, *connections)?),
        };
        Ok(Self(Arc::new(engine)))
    }

    /// A database in memory whose transactions run at once in the caller: the crash simulator's disk.
    pub fn in_memory() -> Result<Self> {
        Ok(Self(Arc::new(Engine::Inline(Inline::open(MAIN)?))))
    }

    /// The file of memories, made if it is not there. Always SQLite. Blocks, as `open` does.
    pub fn open_brain(path: &Path) -> Result<Self> {
        Ok(Self(Arc::new(Engine::Sqlite(Sqlite::open(path, BRAIN)?))))
    }

    /// The file of a team's tasks, made if it is not there. Several processes may have it open.
    pub fn open_ledger(path: &Path) -> Result<Self> {
        Ok(Self(Arc::new(Engine::Sqlite(Sqlite::open_shared(path, LEDGER)?))))
    }

    /// A team's tasks in memory, for the simulator.
    pub fn ledger_in_memory() -> Result<Self> {
        Ok(Self(Arc::new(Engine::Inline(Inline::open(LEDGER)?))))
    }

    /// The registry of a control plane, made if it is not there. Always SQLite. Blocks, as `open` does.
    pub fn open_registry(path: &Path) -> Result<Self> {
        Ok(Self(Arc::new(Engine::Sqlite(Sqlite::open(path, REGISTRY)?))))
    }

    /// Memories in memory, for the simulator.
    pub fn brain_in_memory() -> Result<Self> {
        Ok(Self(Arc::new(Engine::Inline(Inline::open(BRAIN)?))))
    }

    /// Runs one transaction. When this returns `Ok`, it is committed. `body` may be run again after a
    /// deadlock or a lost connection, so everything it makes up (ids, times) comes from outside.
    pub async fn write<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        match &*self.0 {
            Engine::Sqlite(sqlite) => sqlite.write(body).await,
            Engine::Inline(inline) => inline.write(body),
            Engine::Postgres(postgres) => postgres.write(body).await,
        }
    }

    /// Runs queries on a snapshot; never waits for a writer.
    pub async fn read<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        match &*self.0 {
            Engine::Sqlite(sqlite) => sqlite.read(body).await,
            Engine::Inline(inline) => inline.write(body),
            Engine::Postgres(postgres) => postgres.read(body).await,
        }
    }

    /// Leaves the database as one file that holds everything. Blocks: call it when nobody writes any more.
    pub fn settle(&self) -> Result<()> {
        match &*self.0 {
            Engine::Sqlite(sqlite) => sqlite.settle(),
            Engine::Inline(_) | Engine::Postgres(_) => Ok(()),
        }
    }

    /// Several processes may work on this database.
    pub fn is_shared(&self) -> bool {
        matches!(&*self.0, Engine::Postgres(_))
    }

    pub fn engine(&self) -> &'static str {
        match &*self.0 {
            Engine::Sqlite(_) | Engine::Inline(_) => "sqlite",
            Engine::Postgres(_) => "postgres",
        }
    }

    /// Wake-ups of other nodes; `None` where there can be none.
    pub fn signals(&self) -> Option<mpsc::UnboundedReceiver<Signal>> {
        match &*self.0 {
            Engine::Postgres(postgres) => Some(postgres.signals()),
            _ => None,
        }
    }

    /// The SQLite file, for copies and checks.
    pub fn file(&self) -> Option<&Path> {
        match &*self.0 {
            Engine::Sqlite(sqlite) => Some(sqlite.path()),
            _ => None,
        }
    }
}
