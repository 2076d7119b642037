//! How a writer waits for writers of other processes.

use std::thread;
use std::time::Duration;

/// How long a writer waits before its caller gets an error.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Busy handler of SQLite: returns whether to try again.
pub(super) fn on_busy(tried: i32) -> bool {
    wait_within(tried, BUSY_TIMEOUT)
}

pub(super) fn wait_within(tried: i32, timeout: Duration) -> bool {
    let pause = busy_pause(tried, timeout);
    pause.inspect(|pause| thread::sleep(*pause)).is_some()
}

/// SQLite's own pauses grow to 100 ms, during which nobody writes. These stay short.
fn busy_pause(tried: i32, timeout: Duration) -> Option<Duration> {
    let tried = u32::try_from(tried).ok()?;
    let pause = Duration::from_micros(if tried < 20 { 200 } else { 2_000 });
    (pause * tried < timeout).then_some(pause)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::error::{Error, Result};
    use crate::migrate::LEDGER_SCHEMA;
    use crate::sqlite::SqliteEngine;
    use crate::tx_body::{TxBody, downcast_output};

    #[test]
    fn busy_pauses_stay_short_and_end_at_the_timeout() {
        let pauses: Vec<Duration> = (0..).map_while(|tried| busy_pause(tried, BUSY_TIMEOUT)).collect();
        assert_eq!(pauses[..20], [Duration::from_micros(200); 20]);
        assert!(pauses[20..].iter().all(|pause| *pause == Duration::from_millis(2)));
        let all: Duration = pauses.iter().sum();
        assert!(all > BUSY_TIMEOUT - Duration::from_secs(1) && all <= BUSY_TIMEOUT, "{all:?}");
        assert_eq!(busy_pause(i32::MAX, BUSY_TIMEOUT), None);
    }

    fn write(sqlite: &SqliteEngine, team: &'static str) -> Result<usize> {
        const SQL: &str = "INSERT INTO ledgers (team_id, next_task) VALUES ($1, 2)";
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let body = TxBody::new(move |tx| tx.execute(SQL, &[team.into()]));
        runtime.block_on(sqlite.write(body)).and_then(downcast_output)
    }

    #[test]
    fn busy_timeout_is_an_error_and_next_write_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let impatient = |tried| wait_within(tried, Duration::from_millis(50));
        let sqlite = SqliteEngine::open_with_busy_handler(&path, LEDGER_SCHEMA, impatient).unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let error = write(&sqlite, "a").unwrap_err();
        assert!(matches!(error, Error::Unavailable { in_doubt: false, .. }), "{error:?}");
        assert_eq!(error.to_string(), "the database is unavailable: database is locked");
        other.execute_batch("ROLLBACK").unwrap();
        assert_eq!(write(&sqlite, "b").unwrap(), 1);
        let teams: String =
            other.query_row("SELECT GROUP_CONCAT(team_id) FROM ledgers", [], |row| row.get(0)).unwrap();
        assert_eq!(teams, "b", "what was refused was not written later");
    }
}
