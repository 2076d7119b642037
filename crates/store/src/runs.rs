//! Runs: the work that sessions request of sessions they started.

use polyclaw_domain::id::{AgentId, RunId, TraceId, TurnId};
use polyclaw_domain::run::{RunKind, RunOutcome, RunStatus, SubagentRun};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::messages::{from_json, to_json};
use crate::params;
use crate::tx::{Row, Tx};

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT run_id, kind, child_key, agent_id, owner_key, owner_turn, trace_id, hop, task_json, reply_to_json,
             awaited_by, deadline, is_deleted_after, status, result_json, created_at, ended_at, caller_id,
             archive_after_ms, held_code, mirror_to_json FROM runs ",
            $rest
        )
    };
}

mod cleanup;

pub use cleanup::{
    count_running_delegates, delete_ended_by_owner, hold_announce, list_due_for_cleanup, list_held_announces,
    mark_cleaned_up, postpone_cleanup, release_all_announces, release_announce,
};

pub fn insert(tx: &mut Tx<'_>, run: &SubagentRun) -> Result<()> {
    const SQL: &str =
        "INSERT INTO runs (run_id, kind, child_key, agent_id, owner_key, owner_turn, trace_id, hop,
          task_json, reply_to_json, awaited_by, deadline, is_deleted_after, status, created_at, caller_id,
          archive_after_ms, mirror_to_json)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'running', $14, $15, $16, $17)";
    let (task, reply_to) = (to_json(&run.task)?, to_json(&run.reply_to)?);
    let audience = run.audience.as_ref().map(to_json).transpose()?;
    let params = params![
        &run.id,
        run.kind.as_str(),
        &run.child,
        &run.agent,
        &run.owner,
        run.owner_turn.as_ref().map_or("", TurnId::as_str),
        &run.trace,
        run.hop,
        &task,
        &reply_to,
        run.awaited_by.as_ref(),
        run.deadline,
        run.is_deleted_after,
        run.created_at,
        &run.caller,
        run.archive_after_ms,
        audience.as_ref(),
    ];
    tx.execute(SQL, params).map(drop)
}

pub fn get(tx: &mut Tx<'_>, id: &RunId) -> Result<Option<SubagentRun>> {
    tx.query_one(select!("WHERE run_id = $1"), params![id], run_from_row)
}

/// Returns the run a session is working on.
pub fn find_running_by_child(tx: &mut Tx<'_>, child: &SessionKey) -> Result<Option<SubagentRun>> {
    tx.query_one(select!("WHERE child_key = $1 AND status = 'running'"), params![child], run_from_row)
}

/// Returns the last run of a session, running or ended.
pub fn find_last_by_child(tx: &mut Tx<'_>, child: &SessionKey) -> Result<Option<SubagentRun>> {
    const SQL: &str = select!("WHERE child_key = $1 ORDER BY created_at DESC, run_id DESC LIMIT 1");
    tx.query_one(SQL, params![child], run_from_row)
}

/// Lists the runs of an owner, newest first.
pub fn list_by_owner(tx: &mut Tx<'_>, owner: &SessionKey, limit: usize) -> Result<Vec<SubagentRun>> {
    const SQL: &str = select!("WHERE owner_key = $1 ORDER BY created_at DESC, run_id DESC LIMIT $2");
    tx.query(SQL, params![owner, limit], run_from_row)
}

/// Lists the running runs of an owner.
pub fn list_running_by_owner(tx: &mut Tx<'_>, owner: &SessionKey) -> Result<Vec<SubagentRun>> {
    tx.query(
        select!("WHERE owner_key = $1 AND status = 'running' ORDER BY created_at, run_id"),
        params![owner],
        run_from_row,
    )
}

/// Counts the running runs of an agent across its sessions. The agent's row is locked, so that concurrent spawns are
/// counted one after the other. A run whose session waits for a person does not count.
pub fn count_running_by_caller(tx: &mut Tx<'_>, caller: &AgentId, kind: RunKind) -> Result<u32> {
    const LOCK_CALLER: &str = "SELECT agent_id FROM agent_specs WHERE agent_id = $1 /* lock */";
    const SQL: &str = "SELECT COUNT(*) FROM runs r
        WHERE r.status = 'running' AND r.caller_id = $1 AND r.kind = $2 AND NOT EXISTS (
          SELECT 1 FROM jobs j WHERE j.session_key = r.child_key AND j.state = 'queued' AND j.held = 2)";
    tx.query_one(LOCK_CALLER, params![caller], |row| row.text(0))?;
    Ok(tx.query_one(SQL, params![caller, kind.as_str()], |row| row.as_u32(0))?.unwrap_or(0))
}

/// Lists runs past their deadline. The deadline does not apply while the session waits for a person.
pub fn list_overdue(tx: &mut Tx<'_>, now: Millis, limit: usize) -> Result<Vec<SubagentRun>> {
    const SQL: &str = select!(
        "WHERE status = 'running' AND deadline < $1 AND NOT EXISTS (
           SELECT 1 FROM jobs j WHERE j.session_key = runs.child_key AND j.state = 'queued' AND j.held = 2)
         ORDER BY deadline LIMIT $2"
    );
    tx.query(SQL, params![now, limit], run_from_row)
}

/// Returns the next deadline of a running run. Overdue runs are being ended already.
pub fn find_next_deadline(tx: &mut Tx<'_>, now: Millis) -> Result<Option<Millis>> {
    const SQL: &str = "SELECT MIN(deadline) FROM runs WHERE status = 'running' AND deadline >= $1";
    Ok(tx.query_one(SQL, params![now], |row| row.opt_time(0))?.flatten())
}

/// Gives a run that waited for a person its full time again.
pub fn restart_deadline(tx: &mut Tx<'_>, id: &RunId, now: Millis) -> Result<()> {
    const SQL: &str = "UPDATE runs SET deadline = $2 + (deadline - created_at)
        WHERE run_id = $1 AND status = 'running' AND deadline IS NOT NULL";
    tx.execute(SQL, params![id, now]).map(drop)
}

/// Ends a run and schedules the cleanup of its session. Returns `false` if it had ended before.
pub fn end_run(
    tx: &mut Tx<'_>,
    id: &RunId,
    status: RunStatus,
    outcome: &RunOutcome,
    now: Millis,
) -> Result<bool> {
    const SQL: &str = "UPDATE runs SET status = $2, result_json = $3, ended_at = $4,
          cleaned_up_at = CASE WHEN is_deleted_after = 1 THEN $4 ELSE $4 + archive_after_ms END
        WHERE run_id = $1 AND status = 'running'";
    Ok(tx.execute(SQL, params![id, status.as_str(), &to_json(outcome)?, now])? == 1)
}

/// Sets the commit of the child's workspace before it started; empty if there was none.
pub fn set_commit_before(tx: &mut Tx<'_>, id: &RunId, commit: &str) -> Result<()> {
    tx.execute("UPDATE runs SET commit_before = $2 WHERE run_id = $1", params![id, commit]).map(drop)
}

pub fn get_commit_before(tx: &mut Tx<'_>, id: &RunId) -> Result<Option<String>> {
    const SQL: &str = "SELECT commit_before FROM runs WHERE run_id = $1";
    Ok(tx.query_one(SQL, params![id], |row| row.opt_text(0))?.flatten())
}

/// Records that the announce is stored.
pub fn mark_announced(tx: &mut Tx<'_>, id: &RunId) -> Result<()> {
    tx.execute("UPDATE runs SET is_announced = 1 WHERE run_id = $1", params![id]).map(drop)
}

/// Lists runs that ended while a turn waited for them, and were not announced yet.
pub fn list_awaited_results(tx: &mut Tx<'_>, turn: &TurnId) -> Result<Vec<SubagentRun>> {
    const SQL: &str =
        select!("WHERE awaited_by = $1 AND is_announced = 0 AND status <> 'running' ORDER BY run_id");
    tx.query(SQL, params![turn], run_from_row)
}

/// Whether a turn waits for running runs.
pub fn is_awaiting(tx: &mut Tx<'_>, turn: &TurnId) -> Result<bool> {
    const SQL: &str = "SELECT COUNT(*) FROM runs
        WHERE awaited_by = $1 AND is_announced = 0 AND status = 'running'";
    Ok(tx.query_one(SQL, params![turn], |row| row.int(0))?.unwrap_or(0) > 0)
}

/// Clears the waiting turn of running runs when that turn ends.
pub fn stop_awaiting(tx: &mut Tx<'_>, turn: &TurnId) -> Result<()> {
    const SQL: &str = "UPDATE runs SET awaited_by = NULL
        WHERE awaited_by = $1 AND is_announced = 0 AND status = 'running'";
    tx.execute(SQL, params![turn]).map(drop)
}

/// Marks a run as stopped together with its owner.
pub fn mark_stopped(tx: &mut Tx<'_>, id: &RunId) -> Result<()> {
    const SQL: &str = "UPDATE runs SET is_stopped_with_owner = 1 WHERE run_id = $1 AND status = 'running'";
    tx.execute(SQL, params![id]).map(drop)
}

pub fn is_stopped(tx: &mut Tx<'_>, id: &RunId) -> Result<bool> {
    let found =
        tx.query_one("SELECT is_stopped_with_owner FROM runs WHERE run_id = $1", params![id], |row| {
            row.int(0)
        })?;
    Ok(found == Some(1))
}

/// Whether the owner started it for a run of its own that has ended since.
pub fn has_outlived_owner(tx: &mut Tx<'_>, run: &SubagentRun) -> Result<bool> {
    const SQL: &str = "SELECT COUNT(*) FROM runs
        WHERE child_key = $1 AND created_at <= $2 AND ended_at IS NOT NULL AND ended_at >= $2";
    let found = tx.query_one(SQL, params![&run.owner, run.created_at], |row| row.int(0))?;
    Ok(found.unwrap_or(0) > 0)
}

/// Sets or clears the owner's turn that waits for a run.
pub fn set_awaiting_turn(tx: &mut Tx<'_>, id: &RunId, turn: Option<&TurnId>) -> Result<()> {
    const SQL: &str = "UPDATE runs SET awaited_by = $2 WHERE run_id = $1 AND status = 'running'";
    tx.execute(SQL, params![id, turn]).map(drop)
}

fn run_from_row(row: &Row<'_>) -> Result<SubagentRun> {
    Ok(SubagentRun {
        id: RunId::new(row.text(0)?),
        kind: row.parse_column(1, RunKind::parse)?,
        child: row.session_key(2)?,
        agent: row.agent_id(3)?,
        owner: row.session_key(4)?,
        owner_turn: Some(row.text(5)?).filter(|turn| !turn.is_empty()).map(TurnId::new),
        trace: TraceId::new(row.text(6)?),
        hop: row.as_u32(7)?,
        task: from_json(&row.text(8)?)?,
        reply_to: from_json(&row.text(9)?)?,
        awaited_by: row.opt_text(10)?.map(TurnId::new),
        deadline: row.opt_time(11)?,
        is_deleted_after: row.int(12)? != 0,
        status: row.parse_column(13, RunStatus::parse)?,
        result: row.opt_text(14)?.map(|text| from_json(&text)).transpose()?,
        created_at: row.time(15)?,
        ended_at: row.opt_time(16)?,
        caller: row.agent_id(17)?,
        archive_after_ms: row.opt_int(18)?,
        held: row.opt_text(19)?,
        audience: row.opt_text(20)?.map(|text| from_json(&text)).transpose()?,
    })
}
