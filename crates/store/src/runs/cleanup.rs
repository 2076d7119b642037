//! After a run's end: the cleanup of its session, and announces held for a person.

use polyclaw_domain::id::{AgentId, RunId};
use polyclaw_domain::run::SubagentRun;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;

use super::run_from_row;
use crate::error::Result;
use crate::params;
use crate::tx::Tx;

/// Lists announced runs whose sessions are due to be archived or deleted.
pub fn list_due_for_cleanup(tx: &mut Tx<'_>, now: Millis, limit: usize) -> Result<Vec<SubagentRun>> {
    const SQL: &str =
        select!("WHERE cleaned_up_at <= $1 AND is_announced = 1 ORDER BY cleaned_up_at, run_id LIMIT $2");
    tx.query(SQL, params![now, limit], run_from_row)
}

/// Records that the session was cleaned up.
pub fn mark_cleaned_up(tx: &mut Tx<'_>, id: &RunId) -> Result<()> {
    tx.execute("UPDATE runs SET cleaned_up_at = NULL WHERE run_id = $1", params![id]).map(drop)
}

/// Postpones the cleanup of a session that is in use.
pub fn postpone_cleanup(tx: &mut Tx<'_>, id: &RunId, until: Millis) -> Result<()> {
    tx.execute("UPDATE runs SET cleaned_up_at = $2 WHERE run_id = $1", params![id, until]).map(drop)
}

/// Holds the announce for a person.
pub fn hold_announce(tx: &mut Tx<'_>, id: &RunId, code: &str) -> Result<()> {
    tx.execute("UPDATE runs SET held_code = $2 WHERE run_id = $1", params![id, code]).map(drop)
}

/// Releases a held announce. Returns whether it was held.
pub fn release_announce(tx: &mut Tx<'_>, id: &RunId) -> Result<bool> {
    const SQL: &str = "UPDATE runs SET held_code = NULL WHERE run_id = $1 AND held_code IS NOT NULL";
    Ok(tx.execute(SQL, params![id])? == 1)
}

/// Releases all held announces of a session, after a person wrote there or cancelled its queued turn.
pub fn release_all_announces(tx: &mut Tx<'_>, owner: &SessionKey) -> Result<usize> {
    const SQL: &str = "UPDATE runs SET held_code = NULL WHERE owner_key = $1 AND held_code IS NOT NULL";
    tx.execute(SQL, params![owner])
}

/// Lists runs whose announce is held, oldest first.
pub fn list_held_announces(tx: &mut Tx<'_>, limit: usize) -> Result<Vec<SubagentRun>> {
    const SQL: &str = select!("WHERE held_code IS NOT NULL ORDER BY created_at, run_id LIMIT $1");
    tx.query(SQL, params![limit], run_from_row)
}

/// Counts running delegates by caller and target.
pub fn count_running_delegates(tx: &mut Tx<'_>) -> Result<Vec<(AgentId, AgentId, i64)>> {
    const SQL: &str = "SELECT caller_id, agent_id, COUNT(*) FROM runs
        WHERE status = 'running' AND kind = 'delegate' GROUP BY caller_id, agent_id ORDER BY 1, 2";
    tx.query(SQL, &[], |row| Ok((row.agent_id(0)?, row.agent_id(1)?, row.int(2)?)))
}

/// Deletes a session's ended runs when it is deleted. Running ones end by themselves.
pub fn delete_ended_by_owner(tx: &mut Tx<'_>, owner: &SessionKey) -> Result<()> {
    tx.execute("DELETE FROM runs WHERE owner_key = $1 AND status <> 'running'", params![owner]).map(drop)
}
