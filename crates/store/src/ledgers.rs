//! Where the ledgers of teams are: a file each, or the one database that all nodes share.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use polyclaw_domain::id::TeamId;

use crate::db::Db;
use crate::error::{Error, Result};

enum Place {
    /// `<folder>/<team>/ledger.db`.
    Folder(PathBuf),
    /// Beside everything else.
    Shared(Db),
    /// The simulator's disk.
    Memory,
}

/// Ledgers that are open.
pub struct Ledgers {
    place: Place,
    /// `None`: it is closed for good.
    open: Mutex<HashMap<TeamId, Option<Db>>>,
}

impl Ledgers {
    /// A database that several nodes share has the ledgers, too; else each is a file below `folder`.
    pub fn beside(db: &Db, folder: PathBuf) -> Self {
        let place = if db.is_shared() { Place::Shared(db.clone()) } else { Place::Folder(folder) };
        Self { place, open: Mutex::default() }
    }

    pub fn in_memory() -> Self {
        Self { place: Place::Memory, open: Mutex::default() }
    }

    /// The ledger of a team, made if it is not there. Opening a file blocks for a moment.
    pub fn open(&self, id: &TeamId, name: &str) -> Result<Db> {
        let folder = match &self.place {
            Place::Shared(db) => return Ok(db.clone()),
            Place::Folder(folder) => Some(folder.join(name)),
            Place::Memory => None,
        };
        let mut open = self.lock();
        if let Some(known) = open.get(id) {
            return known.clone().ok_or(Error::Closed);
        }
        let db = match folder {
            Some(folder) => open_file(&folder)?,
            None => Db::ledger_in_memory()?,
        };
        open.insert(id.clone(), Some(db.clone()));
        Ok(db)
    }

    /// Nobody needs it any more, and nobody opens it again: its file may move. It is closed when the last who uses it is
    /// done.
    pub fn close(&self, id: &TeamId) {
        if matches!(self.place, Place::Folder(_)) {
            self.lock().insert(id.clone(), None);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TeamId, Option<Db>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open_file(folder: &Path) -> Result<Db> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Error::Other(format!("{} could not be made: {error}", folder.display())))?;
    Db::open_ledger(&folder.join("ledger.db"))
}
