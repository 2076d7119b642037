//! Backlog rows: tasks that a newer message interrupted and their session must still resume.

use polyclaw_domain::backlog::{BacklogTask, ResumeToken};
use polyclaw_domain::id::{MessageId, TurnId};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::{Row, Tx};

/// Adds an interrupted task to the backlog.
pub fn push(tx: &mut Tx<'_>, session: &SessionKey, token: &ResumeToken, now: Millis) -> Result<()> {
    const SQL: &str = "INSERT INTO backlog (session_key, message_id, turn_id, steer_count, created_at)
        VALUES ($1, $2, $3, $4, $5)";
    tx.execute(SQL, params![session, &token.message_id, &token.turn_id, token.steer_count, now]).map(drop)
}

#[derive(Clone, Debug)]
pub struct BacklogEntry {
    pub seq: i64,
    pub task: BacklogTask,
    pub created_at: Millis,
}

pub fn list_waiting(tx: &mut Tx<'_>, session: &SessionKey) -> Result<Vec<BacklogEntry>> {
    const SQL: &str = "SELECT b.seq, b.message_id, b.turn_id, b.steer_count, m.text, b.created_at
        FROM backlog b JOIN messages m ON m.id = b.message_id
        WHERE b.session_key = $1 AND b.drained_by_turn IS NULL ORDER BY b.seq";
    tx.query(SQL, params![session], backlog_entry_from_row)
}

pub fn has_waiting(tx: &mut Tx<'_>, session: &SessionKey) -> Result<bool> {
    const SQL: &str = "SELECT seq FROM backlog WHERE session_key = $1 AND drained_by_turn IS NULL LIMIT 1";
    Ok(tx.query_one(SQL, params![session], |row| row.int(0))?.is_some())
}

/// Marks a row as resumed by `turn`, and links the interrupted turn to it.
pub fn assign_to_turn(tx: &mut Tx<'_>, waiting: &BacklogEntry, turn: &TurnId) -> Result<()> {
    const ASSIGN_ENTRY: &str = "UPDATE backlog SET drained_by_turn = $2 WHERE seq = $1";
    const LINK_JOB: &str = "UPDATE jobs SET continued_by = $2 WHERE turn_id = $1 AND state = 'steered'";
    tx.execute(ASSIGN_ENTRY, params![waiting.seq, turn])?;
    tx.execute(LINK_JOB, params![&waiting.task.token.turn_id, turn]).map(drop)
}

/// Lists the tasks a turn resumed when it started, so that a restart finds them again.
pub fn list_assigned_to_turn(tx: &mut Tx<'_>, turn: &TurnId) -> Result<Vec<BacklogEntry>> {
    const SQL: &str = "SELECT b.seq, b.message_id, b.turn_id, b.steer_count, m.text, b.created_at
        FROM backlog b JOIN messages m ON m.id = b.message_id WHERE b.drained_by_turn = $1 ORDER BY b.seq";
    tx.query(SQL, params![turn], backlog_entry_from_row)
}

/// Cancels waiting tasks when a person stops or renews the session. Their turns end as cancelled.
pub fn cancel_waiting(tx: &mut Tx<'_>, session: &SessionKey) -> Result<usize> {
    const CANCEL_TURNS: &str =
        "UPDATE jobs SET state = 'cancelled', error_code = 'stopped' WHERE state = 'steered'
        AND turn_id IN (SELECT b.turn_id FROM backlog b WHERE b.session_key = $1 AND b.drained_by_turn IS NULL)";
    const DELETE_ENTRIES: &str = "DELETE FROM backlog WHERE session_key = $1 AND drained_by_turn IS NULL";
    tx.execute(CANCEL_TURNS, params![session])?;
    tx.execute(DELETE_ENTRIES, params![session])
}

fn backlog_entry_from_row(row: &Row<'_>) -> Result<BacklogEntry> {
    let token = ResumeToken {
        message_id: MessageId::new(row.text(1)?),
        turn_id: TurnId::new(row.text(2)?),
        steer_count: row.as_u32(3)?,
    };
    let task = BacklogTask { token, task: row.text(4)? };
    Ok(BacklogEntry { seq: row.int(0)?, task, created_at: row.time(5)? })
}
