//! Database checks of `polyclaw doctor`, which may run while a daemon uses the database.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::error::{Error, Result};
use crate::migrate::{self, MAIN_SCHEMA, MEMORY_SCHEMA, SqliteSchema};
use crate::sqlite;

/// Returns the version of the linked SQLite, or an error if it is not trusted.
pub fn check_linked_sqlite() -> Result<String> {
    sqlite::check_sqlite_version(rusqlite::version(), rusqlite::version_number())?;
    Ok(rusqlite::version().to_owned())
}

/// Returns the problems of a SQLite file; empty if there are none. Reads only.
pub fn check_main_file(path: &Path) -> Result<Vec<String>> {
    run_quick_check(path, MAIN_SCHEMA)
}

/// Like `check_main_file`, for the memory database.
pub fn check_memory_file(path: &Path) -> Result<Vec<String>> {
    run_quick_check(path, MEMORY_SCHEMA)
}

fn run_quick_check(path: &Path, schema: SqliteSchema) -> Result<Vec<String>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    migrate::check_schema_version(found, schema)?;
    let mut statement = connection.prepare("PRAGMA quick_check(20)")?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    let lines: Vec<String> = lines.collect::<rusqlite::Result<_>>().map_err(Error::from)?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}
