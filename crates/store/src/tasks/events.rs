//! Events of tasks. They are relayed to sessions exactly once: a crash between the ledger and the sessions loses none,
//! and the sequence number prevents duplicates.

use polyclaw_domain::id::TeamId;
use polyclaw_domain::task::TaskNo;
use polyclaw_domain::time::Millis;
use serde_json::Value;

use crate::error::Result;
use crate::messages::{from_json, to_json};
use crate::params;
use crate::tx::{Row, Tx};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEventKind {
    Created,
    Claimed,
    Started,
    Updated,
    Released,
    Expired,
    Inherited,
    Completed,
    Failed,
    /// A check did not pass.
    Unverified,
    /// A result arrived after the lease had ended.
    Late,
    /// The task had ended and is pending again.
    Reopened,
    Deleted,
}

impl TaskEventKind {
    const ALL: [Self; 13] = [
        Self::Created,
        Self::Claimed,
        Self::Started,
        Self::Updated,
        Self::Released,
        Self::Expired,
        Self::Inherited,
        Self::Completed,
        Self::Failed,
        Self::Unverified,
        Self::Late,
        Self::Reopened,
        Self::Deleted,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Claimed => "claimed",
            Self::Started => "started",
            Self::Updated => "updated",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Inherited => "inherited",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Unverified => "unverified",
            Self::Late => "late",
            Self::Reopened => "reopened",
            Self::Deleted => "deleted",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

#[derive(Clone, Debug)]
pub struct TaskEvent {
    pub seq: i64,
    pub task: TaskNo,
    pub kind: TaskEventKind,
    pub actor: String,
    pub data: Value,
    pub created_at: Millis,
}

pub fn record_event(
    tx: &mut Tx<'_>,
    team: &TeamId,
    no: TaskNo,
    kind: TaskEventKind,
    actor: &str,
    data: &Value,
    now: Millis,
) -> Result<()> {
    const SQL: &str = "INSERT INTO task_events (team_id, task_no, kind, actor, data_json, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)";
    tx.execute(SQL, params![team, no.0, kind.as_str(), actor, &to_json(data)?, now]).map(drop)
}

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT seq, task_no, kind, actor, data_json, created_at FROM task_events ", $rest)
    };
}

/// Lists events that are not relayed yet, in order.
pub fn list_unrelayed(tx: &mut Tx<'_>, team: &TeamId, limit: usize) -> Result<Vec<TaskEvent>> {
    tx.query(
        select!("WHERE team_id = $1 AND is_relayed = 0 ORDER BY seq LIMIT $2"),
        params![team, limit],
        task_event_from_row,
    )
}

pub fn mark_relayed(tx: &mut Tx<'_>, seq: i64) -> Result<()> {
    tx.execute("UPDATE task_events SET is_relayed = 1 WHERE seq = $1", params![seq]).map(drop)
}

/// Lists a team's events after a sequence number, in order.
pub fn list_events(tx: &mut Tx<'_>, team: &TeamId, after: i64, limit: usize) -> Result<Vec<TaskEvent>> {
    tx.query(
        select!("WHERE team_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"),
        params![team, after, limit],
        task_event_from_row,
    )
}

/// Lists the actors of a task's events of one kind.
pub fn list_actors(tx: &mut Tx<'_>, team: &TeamId, no: TaskNo, kind: TaskEventKind) -> Result<Vec<String>> {
    const SQL: &str = "SELECT actor FROM task_events WHERE team_id = $1 AND task_no = $2 AND kind = $3";
    tx.query(SQL, params![team, no.0, kind.as_str()], |row| row.text(0))
}

/// Lists a task's events of one kind, in order.
pub fn list_events_of_kind(
    tx: &mut Tx<'_>,
    team: &TeamId,
    no: TaskNo,
    kind: TaskEventKind,
) -> Result<Vec<TaskEvent>> {
    tx.query(
        select!("WHERE team_id = $1 AND task_no = $2 AND kind = $3 ORDER BY seq"),
        params![team, no.0, kind.as_str()],
        task_event_from_row,
    )
}

fn task_event_from_row(row: &Row<'_>) -> Result<TaskEvent> {
    Ok(TaskEvent {
        seq: row.int(0)?,
        task: TaskNo(row.int(1)?),
        kind: row.parse_column(2, TaskEventKind::parse)?,
        actor: row.text(3)?,
        data: from_json(&row.text(4)?)?,
        created_at: row.time(5)?,
    })
}
