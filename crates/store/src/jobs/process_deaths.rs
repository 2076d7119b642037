//! Turns whose process died. A turn that kills its process must not be started forever, and a machine that crashes
//! often must not cost anybody an answer. The rows distinguish the two: a turn that stored a step since its last death
//! is never blamed, and turns that die together are blamed only after many deaths.

use polyclaw_domain::id::{NodeId, TurnId};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;

use super::claim::earlier_epoch_prefix;
use crate::error::Result;
use crate::params;
use crate::tx::{Row, Tx};

/// Maximum number of orphans found in one pass.
pub const ORPHAN_BATCH_SIZE: usize = 64;

/// A turn that died with others is blamed only after this many times the deaths that suffice for a turn alone.
const SHARED_DEATH_FACTOR: u32 = 2;

/// Turns that always die together are blamed after this many times those deaths, so that restarts end.
const LAST_RESORT_FACTOR: u32 = 10;

/// A search for turns of dead processes.
#[derive(Clone, Debug)]
pub struct OrphanSearch {
    pub node: NodeId,
    /// Shared name of this node's processes; `None` if there can be no other node.
    pub node_name: Option<String>,
    pub now: Millis,
    /// A turn that died this often without storing a step is a suspect. Suspects are started one at a time.
    pub suspect_after: u32,
}

impl OrphanSearch {
    fn earlier_epoch_prefix(&self) -> String {
        earlier_epoch_prefix(self.node_name.as_deref())
    }
}

/// Lists running turns whose node is gone: the lease has ended, or the node is an earlier process of this one. Suspects
/// are excluded. Ordered as in the index of running turns; ordering by `seq` would make SQLite read every turn ever
/// stored.
pub fn list_orphans(tx: &mut Tx<'_>, search: &OrphanSearch) -> Result<Vec<(TurnId, SessionKey)>> {
    const SQL: &str = "SELECT turn_id, session_key FROM jobs
        WHERE state = 'running' AND deaths_without_step < $5
          AND (lease_until < $2 OR node <> $1 AND substr(node, 1, length($3)) = $3)
        ORDER BY lane, agent_id, started_at LIMIT $4";
    let now = tx.lease_clock(search.now);
    let earlier = search.earlier_epoch_prefix();
    let params = params![&search.node, now, &earlier, ORPHAN_BATCH_SIZE, search.suspect_after];
    tx.query(SQL, params, |row| Ok((TurnId::new(row.text(0)?), row.session_key(1)?)))
}

/// Lists orphans that died often without a step, least blamed first, so that each gets a chance to run alone.
pub fn list_suspects(tx: &mut Tx<'_>, search: &OrphanSearch) -> Result<Vec<TurnId>> {
    const SQL: &str = "SELECT turn_id FROM jobs
        WHERE state = 'running' AND deaths_without_step >= $4
          AND (lease_until < $2 OR node <> $1 AND substr(node, 1, length($3)) = $3)
        ORDER BY blamed_deaths, seq";
    let now = tx.lease_clock(search.now);
    let earlier = search.earlier_epoch_prefix();
    let params = params![&search.node, now, &earlier, search.suspect_after];
    tx.query(SQL, params, |row| Ok(TurnId::new(row.text(0)?)))
}

/// Counts process deaths that are not counted yet. Released claims belong to no process.
pub fn record_deaths(tx: &mut Tx<'_>, search: &OrphanSearch) -> Result<()> {
    const SQL: &str = "SELECT DISTINCT node FROM jobs
        WHERE state = 'running' AND node <> 'handed-back'
          AND (cut_off_node IS NULL OR cut_off_node <> node)
          AND (lease_until < $2 OR node <> $1 AND substr(node, 1, length($3)) = $3)";
    let now = tx.lease_clock(search.now);
    let earlier = search.earlier_epoch_prefix();
    let params = params![&search.node, now, &earlier];
    for dead in tx.query(SQL, params, |row| row.text(0))? {
        record_death(tx, &dead, search)?;
    }
    Ok(())
}

/// A running turn of a process that died.
struct CrashedTurn {
    turn: TurnId,
    steps: u32,
    /// Consecutive deaths without a step, including this one.
    deaths: u32,
    blamed: u32,
    is_counted: bool,
    is_orphan: bool,
}

fn record_death(tx: &mut Tx<'_>, dead: &str, search: &OrphanSearch) -> Result<()> {
    const RECORD_DEATH: &str =
        "UPDATE jobs SET deaths_without_step = $2, blamed_deaths = $3, steps_at_death = $4,
          cut_off_node = node
        WHERE turn_id = $1";
    let victims = list_crashed_turns(tx, dead, search)?;
    let gone = list_taken_over_deaths(tx, dead)?;
    for victim in victims.iter().filter(|victim| victim.is_orphan && !victim.is_counted) {
        let others = victims.iter().filter(|other| other.turn != victim.turn).map(|other| other.deaths);
        let others: Vec<u32> = others.chain(gone.iter().copied()).collect();
        let blamed = victim.blamed + u32::from(is_blamed(victim.deaths, &others, search.suspect_after));
        let blamed = if victim.deaths == 0 { 0 } else { blamed };
        tx.execute(RECORD_DEATH, params![&victim.turn, victim.deaths, blamed, victim.steps])?;
    }
    Ok(())
}

/// Whether a death is blamed on this turn. `others` are the death counts of the turns that died with it.
fn is_blamed(deaths: u32, others: &[u32], enough: u32) -> bool {
    let is_worst = others.iter().all(|other| *other < deaths);
    match deaths {
        0 => false,
        _ if others.is_empty() => true,
        _ if is_worst => deaths > enough.saturating_mul(SHARED_DEATH_FACTOR),
        _ => deaths > enough.saturating_mul(LAST_RESORT_FACTOR),
    }
}

fn list_crashed_turns(tx: &mut Tx<'_>, dead: &str, search: &OrphanSearch) -> Result<Vec<CrashedTurn>> {
    const SQL: &str = "SELECT turn_id, deaths_without_step, blamed_deaths, steps_at_death,
          (SELECT COUNT(*) FROM messages WHERE messages.turn_id = jobs.turn_id
             AND role IN ('assistant', 'tool')), cut_off_node, lease_until
        FROM jobs WHERE state = 'running' AND node = $1";
    let now = tx.lease_clock(search.now);
    let is_earlier_life = search.node.as_str() != dead && dead.starts_with(&search.earlier_epoch_prefix());
    let read = |row: &Row<'_>| {
        let (before, steps) = (row.as_u32(1)?, row.as_u32(4)?);
        let is_counted = row.opt_text(5)?.as_deref() == Some(dead);
        let has_new_step = steps > row.as_u32(3)?;
        let deaths = match (is_counted, has_new_step) {
            (true, _) => before,
            (false, true) => 0,
            (false, false) => before.saturating_add(1),
        };
        Ok(CrashedTurn {
            turn: TurnId::new(row.text(0)?),
            steps,
            deaths,
            blamed: row.as_u32(2)?,
            is_counted,
            is_orphan: is_earlier_life || row.opt_time(6)?.is_some_and(|until| until < now),
        })
    };
    tx.query(SQL, params![dead], read)
}

/// Returns the death counts of turns that died with this process and run elsewhere by now or have ended.
fn list_taken_over_deaths(tx: &mut Tx<'_>, dead: &str) -> Result<Vec<u32>> {
    const SQL: &str = "SELECT deaths_without_step FROM jobs
        WHERE cut_off_node = $1 AND (state <> 'running' OR node <> $1)";
    tx.query(SQL, params![dead], |row| row.as_u32(0))
}

/// Marks a node's turns as drained, so that no turn is blamed for what an orderly shutdown cuts off.
pub fn record_drain(tx: &mut Tx<'_>, node: &NodeId) -> Result<()> {
    const SQL: &str = "UPDATE jobs SET cut_off_node = node WHERE state = 'running' AND node = $1";
    tx.execute(SQL, params![node]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_is_blamed_when_alone_or_worst_of_many_deaths() {
        assert!(!is_blamed(0, &[], 3), "it stored a step");
        assert!(is_blamed(1, &[], 3), "nobody else was there");
        assert!(!is_blamed(6, &[1, 0], 3), "the machine may be sick");
        assert!(is_blamed(7, &[1, 0], 3), "it was there each time, the others were not");
        assert!(!is_blamed(30, &[30, 1], 3), "one of two");
        assert!(is_blamed(31, &[31, 1], 3), "no process is started for ever");
    }
}
