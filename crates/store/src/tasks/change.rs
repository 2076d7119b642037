//! Changes of claimed tasks: starting, releasing, ending and reassigning. Each statement checks the fencing token on
//! which the decision was based.

use polyclaw_domain::id::TeamId;
use polyclaw_domain::run::Artifact;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::task::{
    TaskMember, TaskNo, TaskRefusal, TeamTask, TeamTaskState, check_dependencies, check_lease, check_may_end,
};
use polyclaw_domain::time::Millis;
use serde_json::json;

use super::{
    TaskEventKind, add_dependencies, get, list_actors, list_held_by, load_dependencies, record_event,
    remove_dependencies,
};
use crate::error::Result;
use crate::messages::{from_json, to_json};
use crate::params;
use crate::tx::Tx;

type TaskChangeResult = std::result::Result<TeamTask, TaskRefusal>;

/// Changes to a task that has not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskChange {
    pub active_form: Option<String>,
    pub note: Option<String>,
    /// Dependencies to add.
    pub needs: Vec<TaskNo>,
    /// Dependencies to remove.
    pub drops: Vec<TaskNo>,
    /// The new assignee; an empty name lets anyone claim it.
    pub assignee: Option<String>,
}

/// Returns the task, and the fencing token under which this member may change it.
fn get_held_task(
    tx: &mut Tx<'_>,
    team: &TeamId,
    no: TaskNo,
    worker: &TaskMember,
) -> Result<std::result::Result<(TeamTask, i64), TaskRefusal>> {
    let Some(task) = get(tx, team, no)? else { return Ok(Err(TaskRefusal::Unknown(no))) };
    match check_lease(&task, worker) {
        Ok(fence) => Ok(Ok((task, fence))),
        Err(refusal) => refine_refusal(tx, &task, worker, refusal).map(Err),
    }
}

fn reload_task(tx: &mut Tx<'_>, team: &TeamId, no: TaskNo) -> Result<TaskChangeResult> {
    Ok(get(tx, team, no)?.ok_or(TaskRefusal::Unknown(no)))
}

/// Starts work on a claimed task.
pub fn start_task(
    tx: &mut Tx<'_>,
    team: &TeamId,
    no: TaskNo,
    worker: &TaskMember,
    (now, lease_ms): (Millis, i64),
) -> Result<TaskChangeResult> {
    const SQL: &str = "UPDATE tasks SET state = 'in_progress', lease_until = $4
        WHERE team_id = $1 AND task_no = $2 AND fencing_token = $3 AND owner IS NOT NULL";
    let (task, fence) = match get_held_task(tx, team, no, worker)? {
        Ok(held) => held,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let until = tx.lease_clock(now).plus(lease_ms);
    let changed = tx.execute(SQL, params![team, no.0, fence, until])?;
    if changed > 0 && task.state == TeamTaskState::Claimed {
        record_event(tx, team, no, TaskEventKind::Started, &worker.name, &json!({}), now)?;
    }
    reload_task(tx, team, no)
}

/// Releases a task.
pub fn release_task(
    tx: &mut Tx<'_>,
    team: &TeamId,
    no: TaskNo,
    worker: &TaskMember,
    now: Millis,
) -> Result<TaskChangeResult> {
    match get_held_task(tx, team, no, worker)? {
        Ok((_, fence)) => {
            // If the lease ended at this moment, that has released the task already.
            if clear_owner(tx, team, no, fence)? > 0 {
                record_event(tx, team, no, TaskEventKind::Released, &worker.name, &json!({}), now)?;
            }
            reload_task(tx, team, no)
        }
        Err(refusal) => Ok(Err(refusal)),
    }
}

fn clear_owner(tx: &mut Tx<'_>, team: &TeamId, no: TaskNo, fence: i64) -> Result<usize> {
    const SQL: &str =
        "UPDATE tasks SET state = 'pending', owner = NULL, owner_key = NULL, lease_until = NULL,
        claim_key = NULL WHERE team_id = $1 AND task_no = $2 AND fencing_token = $3 AND owner IS NOT NULL";
    tx.execute(SQL, params![team, no.0, fence])
}

/// Releases everything a member holds, with a reason.
pub fn release_all(
    tx: &mut Tx<'_>,
    team: &TeamId,
    owner: &str,
    why: &str,
    now: Millis,
) -> Result<Vec<TaskNo>> {
    let mut freed = Vec::new();
    for task in list_held_by(tx, team, owner)? {
        let fence = task.lease.as_ref().map_or(0, |lease| lease.fencing_token);
        if clear_owner(tx, team, task.no, fence)? > 0 {
            set_note(tx, team, task.no, why)?;
            record_event(tx, team, task.no, TaskEventKind::Released, owner, &json!({ "reason": why }), now)?;
            freed.push(task.no);
        }
    }
    Ok(freed)
}

/// Reassigns everything a member holds to its new session. The new fencing token keeps the old session from ending it.
pub fn reassign_to_session(
    tx: &mut Tx<'_>,
    team: &TeamId,
    owner: &str,
    session: &SessionKey,
    (now, lease_ms): (Millis, i64),
) -> Result<Vec<TaskNo>> {
    const SQL: &str = "UPDATE tasks SET owner_key = $3, fencing_token = fencing_token + 1, lease_until = $4, claim_key = NULL
        WHERE team_id = $1 AND task_no = $2 AND owner IS NOT NULL AND fencing_token = $5";
    let until = tx.lease_clock(now).plus(lease_ms);
    let mut inherited = Vec::new();
    for task in list_held_by(tx, team, owner)? {
        let Some(lease) = task.lease.filter(|lease| lease.session != *session) else { continue };
        if tx.execute(SQL, params![team, task.no.0, session, until, lease.fencing_token])? == 0 {
            continue;
        }
        let data = json!({ "session_key": session });
        record_event(tx, team, task.no, TaskEventKind::Inherited, owner, &data, now)?;
        inherited.push(task.no);
    }
    Ok(inherited)
}

/// Renews the leases of all tasks held by a session.
pub fn renew_leases(
    tx: &mut Tx<'_>,
    team: &TeamId,
    session: &SessionKey,
    (now, lease_ms): (Millis, i64),
) -> Result<usize> {
    const SQL: &str = "UPDATE tasks SET lease_until = $3
        WHERE team_id = $1 AND owner_key = $2 AND owner IS NOT NULL AND lease_until < $3";
    let until = tx.lease_clock(now).plus(lease_ms);
    tx.execute(SQL, params![team, session, until])
}

pub fn set_note(tx: &mut Tx<'_>, team: &TeamId, no: TaskNo, text: &str) -> Result<()> {
    tx.execute("UPDATE tasks SET note = $3 WHERE team_id = $1 AND task_no = $2", params![team, no.0, text])
        .map(drop)
}

/// Changes a task's description or dependencies.
pub fn update_task(
    tx: &mut Tx<'_>,
    team: &TeamId,
    no: TaskNo,
    change: &TaskChange,
    (worker, now): (&TaskMember, Millis),
) -> Result<TaskChangeResult> {
    const SET_ACTIVE_FORM: &str = "UPDATE tasks SET active_form = $3 WHERE team_id = $1 AND task_no = $2";
    // Locked, so that no other dependency is added between the check and the write.
    lock_ledger(tx, team)?;
    let Some(task) = get(tx, team, no)? else { return Ok(Err(TaskRefusal::Unknown(no))) };
    if task.state.has_ended() {
        return Ok(Err(TaskRefusal::Ended(no, task.state)));
    }
    if let Some(name) = &change.assignee
        && !set_assignee(tx, team, no, name)?
    {
        let owner = get(tx, team, no)?.and_then(|task| task.lease).map(|lease| lease.owner);
        return Ok(Err(owner.map_or(TaskRefusal::Late(no), |owner| TaskRefusal::Taken(no, owner))));
    }
    remove_dependencies(tx, team, no, &change.drops)?;
    if !change.needs.is_empty() {
        if let Err(edge) = check_dependencies(no, &change.needs, &load_dependencies(tx, team)?) {
            return Ok(Err(edge.into()));
        }
        add_dependencies(tx, team, no, &change.needs)?;
    }
    if let Some(form) = &change.active_form {
        tx.execute(SET_ACTIVE_FORM, params![team, no.0, form])?;
    }
    if let Some(text) = &change.note {
        set_note(tx, team, no, text)?;
    }
    let data = json!({ "needs": change.needs, "drops": change.drops, "assignee": change.assignee });
    record_event(tx, team, no, TaskEventKind::Updated, &worker.name, &data, now)?;
    reload_task(tx, team, no)
}

/// Sets the assignee. Returns `false` if another member holds the task.
fn set_assignee(tx: &mut Tx<'_>, team: &TeamId, no: TaskNo, name: &str) -> Result<bool> {
    const SQL: &str = "UPDATE tasks SET assignee = NULLIF(CAST($3 AS TEXT), '')
        WHERE team_id = $1 AND task_no = $2 AND ended_at IS NULL AND (owner IS NULL OR $3 IN (owner, ''))";
    Ok(tx.execute(SQL, params![team, no.0, name])? > 0)
}

/// Locks the ledger's row, which is locked before those of its tasks.
pub fn lock_ledger(tx: &mut Tx<'_>, team: &TeamId) -> Result<()> {
    const SQL: &str = "SELECT team_id FROM ledgers WHERE team_id = $1 /* lock */";
    tx.query(SQL, params![team], |row| row.text(0)).map(drop)
}

/// The end of a task.
#[derive(Clone, Debug)]
pub struct TaskEnding {
    pub state: TeamTaskState,
    pub summary: Option<String>,
    pub artifacts: Vec<Artifact>,
    /// The fencing token under which the work was checked; 0 if nobody held the task.
    pub fencing_token: i64,
    /// The call that ends it, so that a repeat is recognized.
    pub call: String,
}

/// Returns the call that last ended a task.
pub fn find_ending_call(tx: &mut Tx<'_>, team: &TeamId, no: TaskNo) -> Result<Option<String>> {
    const SQL: &str = "SELECT data_json FROM task_events
        WHERE team_id = $1 AND task_no = $2 AND kind IN ('completed', 'failed') ORDER BY seq DESC LIMIT 1";
    let data = tx.query_one(SQL, params![team, no.0], |row| row.text(0))?;
    let data = data.map(|json| from_json::<serde_json::Value>(&json)).transpose()?;
    Ok(data.and_then(|data| data["call"].as_str().map(str::to_owned)))
}

/// Ends a task and returns the tasks this unblocks. A result that comes too late is recorded as an event.
pub fn end_task(
    tx: &mut Tx<'_>,
    team: &TeamId,
    no: TaskNo,
    worker: &TaskMember,
    (ending, now): (&TaskEnding, Millis),
) -> Result<std::result::Result<Vec<TaskNo>, TaskRefusal>> {
    // Of two concurrent ends the second sees what the first unblocked, so a task that waits for both is reported once.
    lock_ledger(tx, team)?;
    let Some(task) = get(tx, team, no)? else { return Ok(Err(TaskRefusal::Unknown(no))) };
    let refusal = match check_may_end(&task, worker) {
        Ok(fence) if fence == ending.fencing_token && mark_ended(tx, &task, worker, (ending, now))? => None,
        // Another member has claimed it, or it was reassigned, since it was checked.
        Ok(_) => Some(TaskRefusal::Late(no)),
        Err(refusal) => Some(refine_refusal(tx, &task, worker, refusal)?),
    };
    if let Some(refusal) = refusal {
        if is_late_result_recorded(tx, &task, worker, &refusal)? {
            let data = json!({ "summary": ending.summary, "artifacts": ending.artifacts });
            record_event(tx, team, no, TaskEventKind::Late, &worker.name, &data, now)?;
        }
        return Ok(Err(refusal));
    }
    let unblocked =
        if ending.state == TeamTaskState::Completed { list_unblocked(tx, team, no)? } else { Vec::new() };
    let kind = if ending.state == TeamTaskState::Completed {
        TaskEventKind::Completed
    } else {
        TaskEventKind::Failed
    };
    record_event(
        tx,
        team,
        no,
        kind,
        &worker.name,
        &json!({ "unblocked": unblocked, "call": ending.call }),
        now,
    )?;
    Ok(Ok(unblocked))
}

/// Ends the task if its fencing token is unchanged, or if nobody holds it. Returns `false` otherwise.
fn mark_ended(
    tx: &mut Tx<'_>,
    task: &TeamTask,
    worker: &TaskMember,
    (ending, now): (&TaskEnding, Millis),
) -> Result<bool> {
    const SQL: &str =
        "UPDATE tasks SET state = $4, ended_by = COALESCE(owner, $8), owner = NULL, owner_key = NULL,
          lease_until = NULL, claim_key = NULL, summary = $5, artifacts_json = $6, ended_at = $7
        WHERE team_id = $1 AND task_no = $2
          AND (fencing_token = $3 AND owner IS NOT NULL OR $3 = 0 AND state = 'pending')";
    let (state, artifacts) = (ending.state.as_str(), to_json(&ending.artifacts)?);
    let (no, summary) = (task.no.0, ending.summary.as_ref());
    let params = params![&task.team, no, ending.fencing_token, state, summary, &artifacts, now, &worker.name];
    Ok(tx.execute(SQL, params)? > 0)
}

/// Whether to record the result of a member whose lease had ended, no matter who holds the task now.
fn is_late_result_recorded(
    tx: &mut Tx<'_>,
    task: &TeamTask,
    worker: &TaskMember,
    refusal: &TaskRefusal,
) -> Result<bool> {
    match refusal {
        TaskRefusal::Late(_) => Ok(true),
        TaskRefusal::NotYours(_) => has_event_by(tx, task, TaskEventKind::Expired, worker),
        _ => Ok(false),
    }
}

/// Refuses a former holder of the task because its claim is stale, and other members with the name of the holder.
fn refine_refusal(
    tx: &mut Tx<'_>,
    task: &TeamTask,
    worker: &TaskMember,
    refusal: TaskRefusal,
) -> Result<TaskRefusal> {
    Ok(match (refusal, &task.lease) {
        (TaskRefusal::Late(no), Some(lease)) if !has_event_by(tx, task, TaskEventKind::Claimed, worker)? => {
            TaskRefusal::Taken(no, lease.owner.clone())
        }
        (refusal, _) => refusal,
    })
}

fn has_event_by(tx: &mut Tx<'_>, task: &TeamTask, kind: TaskEventKind, worker: &TaskMember) -> Result<bool> {
    Ok(list_actors(tx, &task.team, task.no, kind)?.contains(&worker.name))
}

/// Lists tasks that depended on this one and have no open dependencies left.
fn list_unblocked(tx: &mut Tx<'_>, team: &TeamId, no: TaskNo) -> Result<Vec<TaskNo>> {
    const SQL: &str = "SELECT n.task_no FROM task_needs n JOIN tasks t ON t.team_id = n.team_id AND t.task_no = n.task_no
        WHERE n.team_id = $1 AND n.needs = $2 AND t.state = 'pending'
          AND NOT EXISTS (SELECT 1 FROM task_needs o JOIN tasks d ON d.team_id = o.team_id AND d.task_no = o.needs
            WHERE o.team_id = n.team_id AND o.task_no = n.task_no AND d.state <> 'completed')
        ORDER BY n.task_no";
    tx.query(SQL, params![team, no.0], |row| Ok(TaskNo(row.int(0)?)))
}
