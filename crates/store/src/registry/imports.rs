//! Imports from other programs.

use polyclaw_domain::id::InstanceId;
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::{Row, Tx};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportState {
    Running,
    Done,
    RolledBack,
}

impl ImportState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::RolledBack => "rolled_back",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Running, Self::Done, Self::RolledBack].into_iter().find(|state| state.as_str() == text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredImport {
    pub id: String,
    pub source: String,
    pub digest: String,
    pub state: ImportState,
    pub instance: Option<InstanceId>,
    /// The import report, as JSON.
    pub report: Option<String>,
    pub created_at: Millis,
    pub ended_at: Option<Millis>,
}

/// The end of a successful import, committed together with the instance it created.
#[derive(Clone, Debug)]
pub struct ImportCompletion {
    pub id: String,
    pub instance: InstanceId,
    pub report: String,
    pub now: Millis,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, source, digest, state, instance_id, report, created_at, ended_at FROM imports ",
            $rest
        )
    };
}

pub fn insert_running(tx: &mut Tx<'_>, id: &str, (source, digest): (&str, &str), now: Millis) -> Result<()> {
    const SQL: &str = "INSERT INTO imports (id, source, digest, state, created_at)
        VALUES ($1, $2, $3, 'running', $4)";
    tx.execute(SQL, params![id, source, digest, now]).map(drop)
}

pub fn finish_run(tx: &mut Tx<'_>, done: &ImportCompletion) -> Result<()> {
    const SQL: &str = "UPDATE imports SET state = 'done', instance_id = $2, report = $3, ended_at = $4
        WHERE id = $1 AND state = 'running'";
    tx.execute(SQL, params![&done.id, &done.instance, &done.report, done.now]).map(drop)
}

/// Marks a failed import as rolled back.
pub fn roll_back(tx: &mut Tx<'_>, id: &str, now: Millis) -> Result<()> {
    const SQL: &str =
        "UPDATE imports SET state = 'rolled_back', ended_at = $2 WHERE id = $1 AND state = 'running'";
    tx.execute(SQL, params![id, now]).map(drop)
}

/// Marks all imports whose process died as rolled back. Their unfinished instances are removed like any others.
pub fn roll_back_unfinished(tx: &mut Tx<'_>, now: Millis) -> Result<()> {
    const SQL: &str = "UPDATE imports SET state = 'rolled_back', ended_at = $1 WHERE state = 'running'";
    tx.execute(SQL, params![now]).map(drop)
}

/// Returns the last import of the same source whose instance still exists.
pub fn find_last_done(tx: &mut Tx<'_>, source: &str, digest: &str) -> Result<Option<StoredImport>> {
    const SQL: &str = select!(
        "WHERE source = $1 AND digest = $2 AND state = 'done'
           AND instance_id IN (SELECT i.id FROM instances i)
         ORDER BY created_at DESC, id DESC LIMIT 1"
    );
    tx.query_one(SQL, params![source, digest], import_from_row)
}

/// Lists imports, newest first. `behind` is a paging cursor: start time and id.
pub fn list(tx: &mut Tx<'_>, behind: Option<(Millis, String)>, limit: usize) -> Result<Vec<StoredImport>> {
    const SQL: &str = select!(
        "WHERE created_at < $1 OR (created_at = $1 AND id < $2) ORDER BY created_at DESC, id DESC LIMIT $3"
    );
    let (at, id) = behind.unwrap_or((Millis(i64::MAX), String::new()));
    tx.query(SQL, params![at, &id, limit], import_from_row)
}

fn import_from_row(row: &Row<'_>) -> Result<StoredImport> {
    Ok(StoredImport {
        id: row.text(0)?,
        source: row.text(1)?,
        digest: row.text(2)?,
        state: row.parse_column(3, ImportState::parse)?,
        instance: row.opt_text(4)?.map(InstanceId::new),
        report: row.opt_text(5)?,
        created_at: row.time(6)?,
        ended_at: row.opt_time(7)?,
    })
}
