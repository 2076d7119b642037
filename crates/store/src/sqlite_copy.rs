//! A copy of a SQLite file that is whole, whoever writes to it meanwhile.

use std::path::Path;
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};

use crate::error::{Error, Result};
use crate::registry::{self, InstanceRecord};
use crate::tx::Tx;

const COPY_BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// All pages in one step: they are of one moment, and a writer beside us is not waited for.
const ALL_PAGES: i32 = i32::MAX;
const COPY_RETRY_AFTER: Duration = Duration::from_millis(50);

/// Page by page, so that what refers to places in the file stays right. Blocks.
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
    // The copy is one file: nothing of it is left in a log beside it.
    target.pragma_update(None, "journal_mode", "DELETE")?;
    Ok(())
}

/// The same for a registry, and the instances in the copy. Processes are no part of a copy: one that should run is started
/// by whoever uses it. Blocks.
pub fn copy_registry(from: &Path, to: &Path) -> Result<Vec<InstanceRecord>> {
    copy_sqlite_file(from, to)?;
    let connection = Connection::open(to)?;
    connection.execute("UPDATE instances SET pid = NULL, pid_started = NULL", [])?;
    Tx::for_sqlite(&connection).run(&mut |tx: &mut Tx<'_>| registry::list(tx))
}
