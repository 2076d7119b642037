//! Consistent copies of SQLite files, even while others write to them.

use std::path::Path;
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};

use crate::error::{Error, Result};
use crate::registry::{self, InstanceRecord};
use crate::tx::Tx;

const COPY_BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// All pages in one step, so that they belong to one moment and concurrent writers cannot restart the copy.
const ALL_PAGES: i32 = i32::MAX;
const COPY_RETRY_AFTER: Duration = Duration::from_millis(50);

/// Copies page by page, so that references to positions in the file stay valid. Blocks.
pub fn copy_sqlite_file(from: &Path, to: &Path) -> Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(from, flags)?;
    source.busy_timeout(COPY_BUSY_TIMEOUT)?;
    let mut target = Connection::open(to)?;
    Backup::new(&source, &mut target)?.run_to_completion(ALL_PAGES, COPY_RETRY_AFTER, None)?;
    let verdict: String = target.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(Error::Corrupt(format!("{}: {verdict}", from.display())));
    }
    // The copy is a single file: nothing may remain in a log next to it.
    target.pragma_update(None, "journal_mode", "DELETE")?;
    Ok(())
}

/// Copies a registry and returns the instances in the copy, without processes: the user of the copy starts those that
/// should run. Blocks.
pub fn copy_registry(from: &Path, to: &Path) -> Result<Vec<InstanceRecord>> {
    copy_sqlite_file(from, to)?;
    let connection = Connection::open(to)?;
    connection.execute("UPDATE instances SET pid = NULL, pid_started = NULL", [])?;
    Tx::for_sqlite(&connection).run(&mut |tx: &mut Tx<'_>| registry::list(tx))
}
