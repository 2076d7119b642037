//! Claiming tasks: one conditional statement decides who gets a task.

use polyclaw_domain::id::TeamId;
use polyclaw_domain::task::{TaskMember, TaskNo, TaskRefusal, TeamTask, claim_refusal};
use polyclaw_domain::team::MAX_CAPABILITIES;
use polyclaw_domain::time::Millis;
use serde_json::json;

use super::{ExpiredTaskLease, TaskEventKind, columns, get, record_event, task_from_row, with_dependencies};
use crate::error::Result;
use crate::params;
use crate::tx::{Param, Tx};

/// A claim of a task. A repeated claim with the same key gets the same task.
#[derive(Clone, Debug)]
pub struct TaskClaimRequest {
    pub team: TeamId,
    pub key: String,
    pub worker: TaskMember,
    pub now: Millis,
    pub lease_ms: i64,
}

/// A claimed task, or the reason for a refusal.
pub type TaskClaimResult = std::result::Result<TeamTask, TaskRefusal>;

/// All dependencies are completed.
macro_rules! ready {
    () => {
        "NOT EXISTS (SELECT 1 FROM task_needs n JOIN tasks d ON d.team_id = n.team_id AND d.task_no = n.needs
           WHERE n.team_id = t.team_id AND n.task_no = t.task_no AND d.state <> 'completed')"
    };
}

/// Whether a task may be claimed by this member.
macro_rules! free {
    () => {
        concat!(
            "t.state = 'pending' AND t.owner IS NULL
             AND (t.assignee IS NULL OR t.assignee = $2)
             AND (t.capability IS NULL OR t.capability IN ($7, $8, $9, $10, $11, $12, $13, $14))
             AND ",
            ready!()
        )
    };
}

macro_rules! take {
    ($which:expr) => {
        concat!(
            "UPDATE tasks AS t SET state = 'claimed', owner = $2, owner_key = $3, fencing_token = t.fencing_token + 1, lease_until = $4,
               claimed_at = $5, claim_key = $6
             WHERE t.team_id = $1 AND t.task_no = ",
            $which,
            " AND ",
            free!(),
            // A repeated call that already has a task gets no second one. The key is looked up first: checking the
            // holder directly would scan all tasks.
            " AND NOT EXISTS (SELECT 1 FROM tasks k WHERE k.team_id = $1 AND k.owner_key = $3 AND k.task_no IN
                (SELECT b.task_no FROM tasks b WHERE b.team_id = $1 AND b.claim_key = $6))
             RETURNING ",
            columns!()
        )
    };
}

const FIND_BY_CLAIM_KEY: &str = "SELECT task_no FROM tasks WHERE team_id = $1 AND claim_key = $2";
const CLAIM_ONE: &str = take!("$15");
// The oldest claimable task. On PostgreSQL concurrent claims skip each other's rows.
const CLAIM_OLDEST: &str = take!(concat!(
    "(SELECT t.task_no FROM tasks t WHERE t.team_id = $1 AND ",
    free!(),
    " ORDER BY t.task_no LIMIT 1 /* skip locked */)"
));

pub fn claim_task(tx: &mut Tx<'_>, wanted: TaskNo, asked: &TaskClaimRequest) -> Result<TaskClaimResult> {
    try_claim(tx, Some(wanted), asked)
}

pub fn claim_oldest(tx: &mut Tx<'_>, asked: &TaskClaimRequest) -> Result<TaskClaimResult> {
    try_claim(tx, None, asked)
}

fn try_claim(tx: &mut Tx<'_>, wanted: Option<TaskNo>, asked: &TaskClaimRequest) -> Result<TaskClaimResult> {
    let TaskClaimRequest { team, key, worker, now, lease_ms } = asked;
    let until = tx.lease_clock(*now).plus(*lease_ms);
    let mut params: Vec<Param<'_>> = params![team, &worker.name, &worker.session, until, *now, key].to_vec();
    let abilities = worker.capabilities.iter().map(Param::from);
    params.extend(abilities.chain(std::iter::repeat(Param::Null)).take(MAX_CAPABILITIES));
    let sql = match wanted {
        Some(no) => {
            params.push(no.0.into());
            CLAIM_ONE
        }
        None => CLAIM_OLDEST,
    };
    let Some(task) = tx.query_one(sql, &params, task_from_row)? else {
        let again = find_earlier_claim(tx, team, key, worker)?;
        return again.map_or_else(|| explain_refusal(tx, team, wanted, worker), |task| Ok(Ok(task)));
    };
    let fence = task.lease.as_ref().map(|lease| lease.fencing_token);
    let facts = json!({ "fencing_token": fence, "session_key": worker.session });
    record_event(tx, team, task.no, TaskEventKind::Claimed, &worker.name, &facts, *now)?;
    with_dependencies(tx, task).map(Ok)
}

fn find_earlier_claim(
    tx: &mut Tx<'_>,
    team: &TeamId,
    key: &str,
    worker: &TaskMember,
) -> Result<Option<TeamTask>> {
    for no in tx.query(FIND_BY_CLAIM_KEY, params![team, key], |row| row.int(0))? {
        let found = get(tx, team, TaskNo(no))?;
        let is_own =
            |task: &TeamTask| task.lease.as_ref().is_some_and(|lease| lease.session == worker.session);
        if let Some(own) = found.filter(is_own) {
            return Ok(Some(own));
        }
    }
    Ok(None)
}

/// Returns why nothing was claimed. A task that the caller already holds is returned as claimed.
fn explain_refusal(
    tx: &mut Tx<'_>,
    team: &TeamId,
    wanted: Option<TaskNo>,
    worker: &TaskMember,
) -> Result<TaskClaimResult> {
    let Some(no) = wanted else { return Ok(Err(TaskRefusal::NothingFree)) };
    let Some(task) = get(tx, team, no)? else { return Ok(Err(TaskRefusal::Unknown(no))) };
    if task.lease.as_ref().is_some_and(|lease| lease.session == worker.session) {
        return Ok(Ok(task));
    }
    // The obstacle may be gone by now; a repeated claim will tell.
    Ok(Err(claim_refusal(&task, worker).unwrap_or(TaskRefusal::NothingFree)))
}

/// Releases tasks whose lease has ended, measured by the clock that granted it.
pub fn expire_leases(tx: &mut Tx<'_>, team: &TeamId, now: Millis) -> Result<Vec<ExpiredTaskLease>> {
    const SQL: &str =
        "SELECT task_no, owner FROM tasks WHERE team_id = $1 AND owner IS NOT NULL AND lease_until < $2
        ORDER BY task_no /* skip locked */";
    const CLEAR_OWNER: &str =
        "UPDATE tasks SET state = 'pending', owner = NULL, owner_key = NULL, lease_until = NULL,
        claim_key = NULL WHERE team_id = $1 AND task_no = $2";
    let clock = tx.lease_clock(now);
    let freed = tx.query(SQL, params![team, clock], |row| {
        Ok(ExpiredTaskLease { no: TaskNo(row.int(0)?), owner: row.text(1)? })
    })?;
    for ExpiredTaskLease { no, owner } in &freed {
        tx.execute(CLEAR_OWNER, params![team, no.0])?;
        record_event(tx, team, *no, TaskEventKind::Expired, owner, &json!({}), now)?;
    }
    Ok(freed)
}
