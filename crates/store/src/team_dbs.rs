//! Locations of team ledgers: one file each, or the database that all nodes share.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use polyclaw_domain::id::TeamId;

use crate::db::Db;
use crate::error::{Error, Result};

enum LedgerLocation {
    /// `<folder>/<team>/ledger.db`.
    Folder(PathBuf),
    /// In the main database.
    Shared(Db),
    /// In memory, for the simulator.
    Memory,
}

enum LedgerState {
    Open {
        db: Db,
        used: Instant,
    },
    /// Closed for good.
    Closed,
}

/// The open ledgers.
pub struct TeamDatabases {
    location: LedgerLocation,
    open: Mutex<HashMap<TeamId, LedgerState>>,
}

impl TeamDatabases {
    /// A shared database contains the ledgers too; otherwise each is a file below `folder`.
    pub fn for_db(db: &Db, folder: PathBuf) -> Self {
        let location =
            if db.is_shared() { LedgerLocation::Shared(db.clone()) } else { LedgerLocation::Folder(folder) };
        Self { location, open: Mutex::default() }
    }

    pub fn in_memory() -> Self {
        Self { location: LedgerLocation::Memory, open: Mutex::default() }
    }

    /// Opens a team's ledger, creating it if needed. Opening a file blocks for a moment.
    pub fn open(&self, id: &TeamId, name: &str) -> Result<Db> {
        let folder = match &self.location {
            LedgerLocation::Shared(db) => return Ok(db.clone()),
            LedgerLocation::Folder(folder) => Some(folder.join(name)),
            LedgerLocation::Memory => None,
        };
        let mut open = self.lock();
        match open.get_mut(id) {
            Some(LedgerState::Open { db, used }) => {
                *used = Instant::now();
                return Ok(db.clone());
            }
            Some(LedgerState::Closed) => return Err(Error::Closed),
            None => {}
        }
        let db = match folder {
            Some(folder) => open_file(&folder)?,
            None => Db::ledger_in_memory()?,
        };
        open.insert(id.clone(), LedgerState::Open { db: db.clone(), used: Instant::now() });
        Ok(db)
    }

    /// Closes a ledger so that it cannot be opened again and its file may be moved. Its log is moved into the database
    /// first.
    pub fn close_for_good(&self, id: &TeamId) {
        if !matches!(self.location, LedgerLocation::Folder(_)) {
            return;
        }
        let closed = self.lock().insert(id.clone(), LedgerState::Closed);
        if let Some(LedgerState::Open { db, .. }) = closed
            && let Err(error) = db.checkpoint_all()
        {
            tracing::warn!(%error, "cannot checkpoint a team's ledger before closing it");
        }
    }

    /// Closes ledgers that were unused for `idle`, so that an idle team holds no file descriptor, thread or memory.
    /// They are reopened on demand. Returns how many remain open.
    pub fn close_idle(&self, idle: Duration) -> usize {
        let mut open = self.lock();
        if matches!(self.location, LedgerLocation::Folder(_)) {
            open.retain(|_, entry| match entry {
                LedgerState::Open { used, .. } => used.elapsed() < idle,
                LedgerState::Closed => true,
            });
        }
        open.values().filter(|entry| matches!(entry, LedgerState::Open { .. })).count()
    }

    /// Closes one team's ledger now. Current users keep it open until they are done.
    pub fn close_if_open(&self, id: &TeamId) {
        let mut open = self.lock();
        if matches!(self.location, LedgerLocation::Folder(_))
            && matches!(open.get(id), Some(LedgerState::Open { .. }))
        {
            open.remove(id);
        }
    }

    /// Opens the ledger of an ended team in the folder it was moved to.
    pub fn open_archived(&self, folder: &Path) -> Result<Db> {
        match &self.location {
            LedgerLocation::Shared(db) => Ok(db.clone()),
            LedgerLocation::Folder(_) if folder.join("ledger.db").exists() => open_file(folder),
            LedgerLocation::Folder(_) | LedgerLocation::Memory => Err(Error::Closed),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TeamId, LedgerState>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open_file(folder: &Path) -> Result<Db> {
    let path = folder.join("ledger.db");
    make_private(folder, &path)
        .map_err(|error| Error::Other(format!("cannot create {}: {error}", folder.display())))?;
    Db::open_ledger(&path)
}

/// Makes the files accessible to their owner only. SQLite gives its other files the mode of the database.
#[cfg(unix)]
fn make_private(folder: &Path, file: &Path) -> std::io::Result<()> {
    use std::fs::{DirBuilder, OpenOptions, Permissions, set_permissions};
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};

    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    set_permissions(folder, Permissions::from_mode(0o700))?;
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(file)?;
    set_permissions(file, Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn make_private(folder: &Path, _: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)
}
