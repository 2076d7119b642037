//! Read-only access to an instance's file while a daemon may be using it.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::error::Result;
use crate::migrate::{self, MAIN_SCHEMA};
use crate::tx::Tx;

/// Runs queries on a main SQLite file that may belong to another process. Reads only, and rejects an unknown newer
/// schema. Blocks.
pub fn query_read_only<T>(path: &Path, mut body: impl FnMut(&mut Tx<'_>) -> Result<T>) -> Result<T> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(2))?;
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    migrate::check_schema_version(found, MAIN_SCHEMA)?;
    Tx::for_sqlite(&connection).run(&mut body)
}
