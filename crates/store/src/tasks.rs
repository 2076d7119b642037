//! Tasks of teams. On SQLite the ledger is a database of its own, on PostgreSQL a part of the main one, with the same
//! statements. Every change records an event in the same transaction.

mod change;
mod claim;
mod claim_batch;
mod claim_queue;
mod events;
mod free_tasks;
mod reopen;

use std::collections::BTreeMap;

use polyclaw_domain::id::TeamId;
use polyclaw_domain::task::{TaskLease, TaskNo, TaskRefusal, TeamTask, TeamTaskState, check_dependencies};

use crate::error::Result;
use crate::messages::{from_json, to_json};
use crate::params;
use crate::tx::{Row, Tx};

pub use change::{
    TaskChange, TaskEnding, end_task, find_ending_call, lock_ledger, reassign_to_session, release_all,
    release_task, renew_leases, set_note, start_task, update_task,
};
pub use claim::{TaskClaimRequest, TaskClaimResult, claim_oldest, claim_task, expire_leases};
pub(crate) use claim_queue::ClaimQueues;
pub use events::{
    TaskEvent, TaskEventKind, list_actors, list_events, list_events_of_kind, list_unrelayed, mark_relayed,
    record_event,
};
pub use free_tasks::{
    FreeTask, OfferableTasks, count_claims, count_claims_by_member, find_next_expiry, list_offerable,
};
pub use reopen::{delete, reopen};

macro_rules! columns {
    () => {
        "team_id, task_no, subject, description, active_form, metadata_json, assignee, capability, verify_json,
         state, owner, owner_key, fencing_token, lease_until, ended_by, summary, note, artifacts_json, created_by,
         created_at, claimed_at, ended_at"
    };
}
pub(crate) use columns;

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT ", columns!(), " FROM tasks ", $rest)
    };
}

/// A new task, with the idempotency key of its creation.
#[derive(Clone, Debug)]
pub struct TaskInsert {
    pub task: TeamTask,
    pub key: Option<String>,
    pub max_open: usize,
}

/// Stores a task and returns its number. If a task was stored under the same key, its number is returned.
pub fn create(tx: &mut Tx<'_>, new: &TaskInsert) -> Result<std::result::Result<TaskNo, TaskRefusal>> {
    let TeamTask { team, created_at, .. } = &new.task;
    // The ledger's row is locked first, so that dependencies and the number of open tasks cannot change.
    const ALLOCATE_NUMBER: &str = "INSERT INTO ledgers (team_id, next_task) VALUES ($1, 2)
        ON CONFLICT (team_id) DO UPDATE SET next_task = ledgers.next_task + 1 RETURNING next_task - 1";
    const FIND_BY_CREATE_KEY: &str = "SELECT task_no FROM tasks WHERE team_id = $1 AND create_key = $2";
    let no = TaskNo(tx.query_one(ALLOCATE_NUMBER, params![team], |row| row.int(0))?.unwrap_or(1));
    if let Some(key) = &new.key
        && let Some(no) = tx.query_one(FIND_BY_CREATE_KEY, params![team, key], |row| row.int(0))?
    {
        release_number(tx, team)?;
        return Ok(Ok(TaskNo(no)));
    }
    let open = count_open(tx, team)?;
    if open >= new.max_open {
        release_number(tx, team)?;
        return Ok(Err(TaskRefusal::TooMany(open, new.max_open)));
    }
    // Without dependencies there is nothing to check, and not every task of the team has to be read.
    if !new.task.needs.is_empty()
        && let Err(edge) = check_dependencies(no, &new.task.needs, &load_dependencies(tx, team)?)
    {
        release_number(tx, team)?;
        return Ok(Err(edge.into()));
    }
    insert_task(tx, no, new)?;
    add_dependencies(tx, team, no, &new.task.needs)?;
    record_event(
        tx,
        team,
        no,
        TaskEventKind::Created,
        &new.task.created_by,
        &serde_json::json!({}),
        *created_at,
    )?;
    Ok(Ok(no))
}

/// Frees the allocated number of a task that was not created. The ledger's row is locked, so nobody has taken the next
/// one.
fn release_number(tx: &mut Tx<'_>, team: &TeamId) -> Result<()> {
    const SQL: &str = "UPDATE ledgers SET next_task = next_task - 1 WHERE team_id = $1";
    tx.execute(SQL, params![team]).map(drop)
}

fn insert_task(tx: &mut Tx<'_>, no: TaskNo, new: &TaskInsert) -> Result<()> {
    const SQL: &str =
        "INSERT INTO tasks (team_id, task_no, subject, description, active_form, metadata_json, assignee,
          capability, verify_json, state, create_key, created_by, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'pending', $10, $11, $12)";
    let task = &new.task;
    let metadata = task.metadata.as_ref().map(to_json).transpose()?;
    let verify = task.verify.as_ref().map(to_json).transpose()?;
    let params = params![
        &task.team,
        no.0,
        &task.subject,
        &task.description,
        task.active_form.as_ref(),
        metadata.as_ref(),
        task.assignee.as_ref(),
        task.capability.as_ref(),
        verify.as_ref(),
        new.key.as_ref(),
        &task.created_by,
        task.created_at,
    ];
    tx.execute(SQL, params).map(drop)
}

pub(crate) fn add_dependencies(tx: &mut Tx<'_>, team: &TeamId, no: TaskNo, needs: &[TaskNo]) -> Result<()> {
    const SQL: &str =
        "INSERT INTO task_needs (team_id, task_no, needs) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    needs.iter().try_for_each(|need| tx.execute(SQL, params![team, no.0, need.0]).map(drop))
}

pub(crate) fn remove_dependencies(
    tx: &mut Tx<'_>,
    team: &TeamId,
    no: TaskNo,
    needs: &[TaskNo],
) -> Result<()> {
    const SQL: &str = "DELETE FROM task_needs WHERE team_id = $1 AND task_no = $2 AND needs = $3";
    needs.iter().try_for_each(|need| tx.execute(SQL, params![team, no.0, need.0]).map(drop))
}

/// Loads every task with its dependencies.
pub(crate) fn load_dependencies(tx: &mut Tx<'_>, team: &TeamId) -> Result<BTreeMap<TaskNo, Vec<TaskNo>>> {
    const FIND_TASKS: &str = "SELECT task_no FROM tasks WHERE team_id = $1";
    const FIND_ALL_DEPENDENCIES: &str = "SELECT task_no, needs FROM task_needs WHERE team_id = $1";
    let mut known: BTreeMap<TaskNo, Vec<TaskNo>> = BTreeMap::new();
    for no in tx.query(FIND_TASKS, params![team], |row| row.int(0))? {
        known.insert(TaskNo(no), Vec::new());
    }
    for (no, need) in tx.query(FIND_ALL_DEPENDENCIES, params![team], |row| Ok((row.int(0)?, row.int(1)?)))? {
        known.entry(TaskNo(no)).or_default().push(TaskNo(need));
    }
    Ok(known)
}

pub fn count_open(tx: &mut Tx<'_>, team: &TeamId) -> Result<usize> {
    const SQL: &str =
        "SELECT COUNT(*) FROM tasks WHERE team_id = $1 AND state IN ('pending', 'claimed', 'in_progress')";
    Ok(tx.query_one(SQL, params![team], |row| row.count(0))?.unwrap_or(0))
}

pub fn get(tx: &mut Tx<'_>, team: &TeamId, no: TaskNo) -> Result<Option<TeamTask>> {
    let found =
        tx.query_one(select!("WHERE team_id = $1 AND task_no = $2"), params![team, no.0], task_from_row)?;
    found.map(|task| with_dependencies(tx, task)).transpose()
}

fn with_dependencies(tx: &mut Tx<'_>, mut task: TeamTask) -> Result<TeamTask> {
    const FIND_DEPENDENCIES: &str = "SELECT n.needs, t.state FROM task_needs n
        JOIN tasks t ON t.team_id = n.team_id AND t.task_no = n.needs
        WHERE n.team_id = $1 AND n.task_no = $2 ORDER BY n.needs";
    let needs =
        tx.query(FIND_DEPENDENCIES, params![&task.team, task.no.0], |row| Ok((row.int(0)?, row.text(1)?)))?;
    for (need, state) in needs {
        task.needs.push(TaskNo(need));
        if state != TeamTaskState::Completed.as_str() {
            task.blocked_by.push(TaskNo(need));
        }
    }
    Ok(task)
}

/// A filter for tasks.
#[derive(Clone, Debug, Default)]
pub struct TaskListFilter {
    pub state: Option<TeamTaskState>,
    /// The member who holds it, or held it when it ended.
    pub owner: Option<String>,
    /// Include ended tasks. Implied if `state` is an end state.
    pub with_ended: bool,
    /// Paging cursor: tasks after this one, which has ended or not.
    pub after: Option<(bool, TaskNo)>,
    pub limit: usize,
}

/// Lists open tasks, then ended ones, each newest first and with its dependencies.
pub fn list(tx: &mut Tx<'_>, team: &TeamId, filter: &TaskListFilter) -> Result<Vec<TeamTask>> {
    let (is_behind_open, behind) = filter.after.map_or((false, TaskNo(i64::MAX)), |after| after);
    let mut found = match is_behind_open {
        true => Vec::new(),
        false => query_tasks(
            tx,
            if tx.is_sqlite() { LIST_OPEN_IN_SQLITE } else { LIST_OPEN },
            team,
            filter,
            (behind, filter.limit),
        )?,
    };
    let room = filter.limit.saturating_sub(found.len());
    let with_ended = filter.with_ended || filter.state.is_some_and(TeamTaskState::has_ended);
    if with_ended && room > 0 {
        let behind = if is_behind_open { behind } else { TaskNo(i64::MAX) };
        found.extend(query_tasks(tx, LIST_ENDED, team, filter, (behind, room))?);
    }
    let mut edges = load_dependency_states(tx, team, &found)?;
    for task in &mut found {
        for (need, is_done) in edges.remove(&task.no).unwrap_or_default() {
            task.needs.push(need);
            if !is_done {
                task.blocked_by.push(need);
            }
        }
    }
    Ok(found)
}

/// Open tasks are few, and have an index of their own.
macro_rules! open {
    ($from:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            $from,
            " WHERE team_id = $1 AND state IN ('pending', 'claimed', 'in_progress') AND task_no < $4
                AND (CAST($2 AS TEXT) IS NULL OR state = $2)
                AND (CAST($3 AS TEXT) IS NULL OR owner = $3 OR ended_by = $3)
              ORDER BY task_no DESC LIMIT $5"
        )
    };
}
const LIST_OPEN: &str = open!(" FROM tasks");
/// Without the hint SQLite scans the primary key, including all ended tasks.
const LIST_OPEN_IN_SQLITE: &str = open!(" FROM tasks INDEXED BY tasks_open");
/// Ended tasks are many: they are read along the primary key until there are enough, and never sorted.
const LIST_ENDED: &str = select!(
    "WHERE team_id = $1 AND state NOT IN ('pending', 'claimed', 'in_progress')
       AND (CAST($2 AS TEXT) IS NULL OR state = $2)
       AND (CAST($3 AS TEXT) IS NULL OR owner = $3 OR ended_by = $3) AND task_no < $4
     ORDER BY task_no DESC LIMIT $5"
);

fn query_tasks(
    tx: &mut Tx<'_>,
    sql: &'static str,
    team: &TeamId,
    filter: &TaskListFilter,
    (behind, limit): (TaskNo, usize),
) -> Result<Vec<TeamTask>> {
    let state = filter.state.map(TeamTaskState::as_str);
    tx.query(sql, params![team, state, filter.owner.as_ref(), behind.0, limit], task_from_row)
}

/// Lists the most recently ended tasks, newest first.
pub fn list_last_ended(tx: &mut Tx<'_>, team: &TeamId, limit: usize) -> Result<Vec<TeamTask>> {
    const SQL: &str =
        select!("WHERE team_id = $1 AND ended_at IS NOT NULL ORDER BY ended_at DESC, task_no DESC LIMIT $2");
    tx.query(SQL, params![team, limit], task_from_row)
}

type TaskDependencies = BTreeMap<TaskNo, Vec<(TaskNo, bool)>>;

/// Loads the dependencies of these tasks and whether each is completed. The numbers of a page are close together.
fn load_dependency_states(tx: &mut Tx<'_>, team: &TeamId, tasks: &[TeamTask]) -> Result<TaskDependencies> {
    const SQL: &str = "SELECT n.task_no, n.needs, t.state FROM task_needs n
        JOIN tasks t ON t.team_id = n.team_id AND t.task_no = n.needs
        WHERE n.team_id = $1 AND n.task_no BETWEEN $2 AND $3 ORDER BY n.task_no, n.needs";
    let numbers = || tasks.iter().map(|task| task.no.0);
    let (Some(first), Some(last)) = (numbers().min(), numbers().max()) else {
        return Ok(TaskDependencies::new());
    };
    let read = |row: &Row<'_>| Ok((row.int(0)?, row.int(1)?, row.text(2)?));
    let mut edges = TaskDependencies::new();
    for (no, need, state) in tx.query(SQL, params![team, first, last], read)? {
        let is_done = state == TeamTaskState::Completed.as_str();
        edges.entry(TaskNo(no)).or_default().push((TaskNo(need), is_done));
    }
    Ok(edges)
}

pub(crate) fn task_from_row(row: &Row<'_>) -> Result<TeamTask> {
    let lease = match (row.opt_text(10)?, row.opt_time(13)?) {
        (Some(owner), Some(until)) => {
            Some(TaskLease { owner, session: row.session_key(11)?, fencing_token: row.int(12)?, until })
        }
        _ => None,
    };
    Ok(TeamTask {
        team: TeamId::new(row.text(0)?),
        no: TaskNo(row.int(1)?),
        subject: row.text(2)?,
        description: row.text(3)?,
        active_form: row.opt_text(4)?,
        metadata: row.opt_text(5)?.map(|json| from_json(&json)).transpose()?,
        assignee: row.opt_text(6)?,
        capability: row.opt_text(7)?,
        verify: row.opt_text(8)?.map(|json| from_json(&json)).transpose()?,
        state: row.parse_column(9, TeamTaskState::parse)?,
        lease,
        ended_by: row.opt_text(14)?,
        summary: row.opt_text(15)?,
        note: row.opt_text(16)?,
        artifacts: row.opt_text(17)?.map(|json| from_json(&json)).transpose()?.unwrap_or_default(),
        needs: Vec::new(),
        blocked_by: Vec::new(),
        created_by: row.text(18)?,
        created_at: row.time(19)?,
        claimed_at: row.opt_time(20)?,
        ended_at: row.opt_time(21)?,
    })
}

/// A task whose lease has ended, and its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiredTaskLease {
    pub no: TaskNo,
    pub owner: String,
}

/// Lists the names of members that hold a task.
pub fn list_owners(tx: &mut Tx<'_>, team: &TeamId) -> Result<Vec<String>> {
    const SQL: &str = "SELECT DISTINCT owner FROM tasks WHERE team_id = $1 AND owner IS NOT NULL";
    tx.query(SQL, params![team], |row| row.text(0))
}

/// Lists the tasks that a member holds.
pub fn list_held_by(tx: &mut Tx<'_>, team: &TeamId, owner: &str) -> Result<Vec<TeamTask>> {
    tx.query(
        select!("WHERE team_id = $1 AND owner = $2 ORDER BY task_no"),
        params![team, owner],
        task_from_row,
    )
}
