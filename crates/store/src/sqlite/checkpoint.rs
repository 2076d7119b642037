//! Checkpoints: a separate thread moves the log into the database, so that no commit waits for the disk.

use std::path::Path;
use std::sync::{Weak, mpsc};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use super::{SqliteWriter, plan_once, spawn_thread};
use crate::error::Result;

/// How long the log may grow before it is checked.
const CHECKPOINT_INTERVAL: Duration = Duration::from_millis(200);

/// Number of log pages worth a checkpoint.
const MIN_CHECKPOINT_PAGES: i64 = 1_000;

/// Number of log pages at which writers are blocked for a moment, so that the log restarts from its beginning. Under a
/// load without pauses it would only grow.
const MAX_LOG_PAGES: i64 = 16_000;

/// Pause after a checkpoint that a reader blocked.
const BUSY_RETRY_AFTER: Duration = Duration::from_secs(5);

/// Starts the thread. It is signalled after each commit and ends when its sender is gone.
pub(super) fn start_checkpointer(
    path: &Path,
    writer: Weak<SqliteWriter>,
    receiver: mpsc::Receiver<()>,
) -> Result<()> {
    let connection = Connection::open(path)?;
    plan_once(&connection)?;
    connection.execute_batch(
        "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA busy_timeout = 50;",
    )?;
    spawn_thread("store-checkpoint", move || {
        while receiver.recv().is_ok() {
            std::thread::sleep(CHECKPOINT_INTERVAL);
            let Some(writer) = writer.upgrade() else { return };
            match checkpoint_log(&connection, &writer) {
                Ok(()) => {}
                // A reader uses an old snapshot: do not block writers for it again and again.
                Err(rusqlite::Error::SqliteFailure(error, _)) if error.code == ErrorCode::DatabaseBusy => {
                    std::thread::sleep(BUSY_RETRY_AFTER);
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot checkpoint the database's log; retrying later");
                }
            }
        }
    })
}

fn checkpoint_log(connection: &Connection, writer: &SqliteWriter) -> rusqlite::Result<()> {
    let (log, moved) = run_checkpoint(connection, "PRAGMA wal_checkpoint(NOOP)")?;
    if log - moved >= MIN_CHECKPOINT_PAGES {
        run_checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)")?;
    }
    let mut restarted = Ok(());
    if log >= MAX_LOG_PAGES {
        writer.run_exclusively(|_| {
            restarted = run_checkpoint(connection, "PRAGMA wal_checkpoint(RESTART)").map(drop);
        });
    }
    restarted
}

/// Returns how many pages the log has, and how many of them were moved into the database.
pub(super) fn run_checkpoint(connection: &Connection, sql: &str) -> rusqlite::Result<(i64, i64)> {
    let (busy, log, moved): (bool, i64, i64) =
        connection.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    match busy {
        true => {
            Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None))
        }
        false => Ok((log, moved)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn grown_wal_is_checkpointed_and_short_one_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let connection = Connection::open(dir.path().join("x.db")).unwrap();
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;").unwrap();
        let idle = Mutex::new(Connection::open(dir.path().join("x.db")).unwrap());
        let writer = SqliteWriter {
            connection: idle,
            write_lock: None,
            waiting: 0.into(),
            written: mpsc::sync_channel(1).0,
        };
        connection.execute_batch("CREATE TABLE t (x BLOB); INSERT INTO t VALUES (zeroblob(8000));").unwrap();
        checkpoint_log(&connection, &writer).unwrap();
        let (log, moved) = run_checkpoint(&connection, "PRAGMA wal_checkpoint(NOOP)").unwrap();
        assert!(log > 0 && moved == 0, "{log} {moved}");
        connection.execute_batch("INSERT INTO t VALUES (zeroblob(8000000));").unwrap();
        checkpoint_log(&connection, &writer).unwrap();
        let (log, moved) = run_checkpoint(&connection, "PRAGMA wal_checkpoint(NOOP)").unwrap();
        assert!(log >= MIN_CHECKPOINT_PAGES && moved == log, "{log} {moved}");
        connection.execute_batch("INSERT INTO t VALUES (zeroblob(80000000));").unwrap();
        checkpoint_log(&connection, &writer).unwrap();
        connection.execute_batch("INSERT INTO t VALUES (1);").unwrap();
        let (log, _) = run_checkpoint(&connection, "PRAGMA wal_checkpoint(NOOP)").unwrap();
        assert!(log < MIN_CHECKPOINT_PAGES, "the log starts from its beginning again: {log}");
    }
}
