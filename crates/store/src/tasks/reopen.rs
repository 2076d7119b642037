//! Reopening and deleting tasks.

use polyclaw_domain::id::TeamId;
use polyclaw_domain::task::{TaskMember, TaskNo, TaskRefusal, TeamTask};
use polyclaw_domain::time::Millis;
use serde_json::json;

use super::{TaskEventKind, get, lock_ledger, record_event};
use crate::error::Result;
use crate::params;
use crate::tx::Tx;

/// Makes an ended task pending again. Tasks that depend on it are blocked again, unless they have started.
pub fn reopen(
    tx: &mut Tx<'_>,
    team: &TeamId,
    no: TaskNo,
    (worker, now): (&TaskMember, Millis),
) -> Result<std::result::Result<TeamTask, TaskRefusal>> {
    const SQL: &str = "UPDATE tasks SET state = 'pending', ended_by = NULL, ended_at = NULL, summary = NULL,
          artifacts_json = NULL, claimed_at = NULL
        WHERE team_id = $1 AND task_no = $2 AND state IN ('completed', 'failed')";
    lock_ledger(tx, team)?;
    let Some(task) = get(tx, team, no)? else { return Ok(Err(TaskRefusal::Unknown(no))) };
    if tx.execute(SQL, params![team, no.0])? == 0 {
        return Ok(Err(TaskRefusal::NotEnded(no)));
    }
    let data = json!({ "was": task.state, "summary": task.summary });
    record_event(tx, team, no, TaskEventKind::Reopened, &worker.name, &data, now)?;
    Ok(get(tx, team, no)?.ok_or(TaskRefusal::Unknown(no)))
}

/// Deletes a task that nobody holds, and all dependencies on it. Its number is not reused.
pub fn delete(
    tx: &mut Tx<'_>,
    team: &TeamId,
    no: TaskNo,
    (worker, now): (&TaskMember, Millis),
) -> Result<std::result::Result<TeamTask, TaskRefusal>> {
    const FIND_DEPENDENTS: &str =
        "SELECT task_no FROM task_needs WHERE team_id = $1 AND needs = $2 ORDER BY task_no";
    const DELETE_DEPENDENCIES: &str =
        "DELETE FROM task_needs WHERE team_id = $1 AND (needs = $2 OR task_no = $2)";
    const DELETE_TASK: &str = "DELETE FROM tasks WHERE team_id = $1 AND task_no = $2";
    // No task is left to report on.
    const MARK_RELAYED: &str = "UPDATE task_events SET is_relayed = 1 WHERE team_id = $1 AND task_no = $2";
    lock_ledger(tx, team)?;
    let Some(task) = get(tx, team, no)? else { return Ok(Err(TaskRefusal::Unknown(no))) };
    if let Some(lease) = &task.lease {
        return Ok(Err(TaskRefusal::Taken(no, lease.owner.clone())));
    }
    let waiting = tx.query(FIND_DEPENDENTS, params![team, no.0], |row| row.int(0).map(TaskNo))?;
    tx.execute(DELETE_DEPENDENCIES, params![team, no.0])?;
    tx.execute(DELETE_TASK, params![team, no.0])?;
    record_event(
        tx,
        team,
        no,
        TaskEventKind::Deleted,
        &worker.name,
        &json!({ "subject": task.subject }),
        now,
    )?;
    tx.execute(MARK_RELAYED, params![team, no.0])?;
    for other in waiting {
        record_event(tx, team, other, TaskEventKind::Updated, &worker.name, &json!({ "drops": [no] }), now)?;
    }
    Ok(Ok(task))
}
