//! Free tasks, for offering them to members.

use std::collections::HashMap;

use polyclaw_domain::id::TeamId;
use polyclaw_domain::task::{TaskNo, TeamTask};
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tasks::get;
use crate::tx::Tx;

/// A task that nobody holds and whose dependencies are completed.
#[derive(Clone, Debug)]
pub struct FreeTask {
    pub task: TeamTask,
    /// How often it was claimed. A released task is offered again.
    pub claims: i64,
    /// The member who released it last.
    pub released_by: Option<String>,
}

/// Lists the oldest free tasks.
fn list_free(tx: &mut Tx<'_>, team: &TeamId, limit: usize) -> Result<Vec<FreeTask>> {
    const SQL: &str = "SELECT t.task_no, t.fencing_token FROM tasks t
        WHERE t.team_id = $1 AND t.state = 'pending' AND NOT EXISTS (SELECT 1 FROM task_needs n
          JOIN tasks d ON d.team_id = n.team_id AND d.task_no = n.needs
          WHERE n.team_id = t.team_id AND n.task_no = t.task_no AND d.state <> 'completed')
        ORDER BY t.task_no LIMIT $2";
    let mut found = Vec::new();
    for (no, claims) in tx.query(SQL, params![team, limit], |row| Ok((TaskNo(row.int(0)?), row.int(1)?)))? {
        let given_back_by = if claims > 0 { find_last_releaser(tx, team, no)? } else { None };
        found.extend(get(tx, team, no)?.map(|task| FreeTask { task, claims, released_by: given_back_by }));
    }
    Ok(found)
}

/// Returns how often a task was claimed.
pub fn count_claims(tx: &mut Tx<'_>, team: &TeamId, no: TaskNo) -> Result<i64> {
    const SQL: &str = "SELECT fencing_token FROM tasks WHERE team_id = $1 AND task_no = $2";
    Ok(tx.query_one(SQL, params![team, no.0], |row| row.int(0))?.unwrap_or_default())
}

/// Tasks that can be offered, and members that get no offer.
#[derive(Clone, Debug)]
pub struct OfferableTasks {
    pub free: Vec<FreeTask>,
    /// Names of members that hold a task.
    pub holders: Vec<String>,
    /// How many tasks each member has taken so far.
    pub claims_by_member: HashMap<String, i64>,
}

pub fn list_offerable(tx: &mut Tx<'_>, team: &TeamId, limit: usize) -> Result<OfferableTasks> {
    let free = list_free(tx, team, limit)?;
    let taken = if free.is_empty() { HashMap::new() } else { count_claims_by_member(tx, team)? };
    Ok(OfferableTasks { holders: list_holders(tx, team)?, claims_by_member: taken, free })
}

/// Counts how many tasks each member has taken so far.
pub fn count_claims_by_member(tx: &mut Tx<'_>, team: &TeamId) -> Result<HashMap<String, i64>> {
    const SQL: &str = "SELECT actor, COUNT(*) FROM task_events WHERE team_id = $1 AND kind = 'claimed'
        GROUP BY actor";
    Ok(tx.query(SQL, params![team], |row| Ok((row.text(0)?, row.int(1)?)))?.into_iter().collect())
}

fn list_holders(tx: &mut Tx<'_>, team: &TeamId) -> Result<Vec<String>> {
    const SQL: &str = "SELECT DISTINCT owner FROM tasks WHERE team_id = $1 AND owner IS NOT NULL";
    tx.query(SQL, params![team], |row| row.text(0))
}

/// Returns when the first lease of a team ends.
pub fn find_next_expiry(tx: &mut Tx<'_>, team: &TeamId) -> Result<Option<Millis>> {
    const SQL: &str = "SELECT MIN(lease_until) FROM tasks WHERE team_id = $1 AND owner IS NOT NULL";
    Ok(tx.query_one(SQL, params![team], |row| row.opt_time(0))?.flatten())
}

fn find_last_releaser(tx: &mut Tx<'_>, team: &TeamId, no: TaskNo) -> Result<Option<String>> {
    const SQL: &str = "SELECT actor FROM task_events
        WHERE team_id = $1 AND task_no = $2 AND kind IN ('released', 'expired') ORDER BY seq DESC LIMIT 1";
    tx.query_one(SQL, params![team, no.0], |row| row.text(0))
}
