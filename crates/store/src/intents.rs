//! Intents: a row records that a tool is about to run, and later that its result is stored.

use polyclaw_domain::id::TurnId;
use polyclaw_domain::time::Millis;
use polyclaw_domain::tool::{ToolCall, ToolEffect};

use crate::error::Result;
use crate::params;
use crate::tx::Tx;

/// Whether a restart may run a call that has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayDecision {
    /// It was never started, or running it again is harmless.
    Run,
    /// It was started and may have taken effect: never run it again.
    Unknown,
}

/// Records that a call is about to run, and returns whether it may.
pub fn start_call(
    tx: &mut Tx<'_>,
    turn: &TurnId,
    call: &ToolCall,
    effect: ToolEffect,
    now: Millis,
) -> Result<ReplayDecision> {
    const FIND: &str = "SELECT effect FROM intents WHERE turn_id = $1 AND call_id = $2";
    const INSERT: &str = "INSERT INTO intents (turn_id, call_id, name, effect, state, started_at)
        VALUES ($1, $2, $3, $4, 'intent', $5)";
    let found = tx.query_one(FIND, params![turn, &call.id], |row| row.text(0))?;
    match found {
        Some(stored) if stored == ToolEffect::Effect.as_str() => Ok(ReplayDecision::Unknown),
        Some(_) => Ok(ReplayDecision::Run),
        None => {
            tx.execute(INSERT, params![turn, &call.id, &call.name, effect.as_str(), now])?;
            Ok(ReplayDecision::Run)
        }
    }
}

/// Whether a call was started before, which implies that it was approved.
pub fn is_started(tx: &mut Tx<'_>, turn: &TurnId, call_id: &str) -> Result<bool> {
    const SQL: &str = "SELECT COUNT(*) FROM intents WHERE turn_id = $1 AND call_id = $2";
    Ok(tx.query_one(SQL, params![turn, call_id], |row| row.int(0))?.unwrap_or(0) > 0)
}

/// Whether a call was started and its result is not stored yet.
pub fn is_unfinished(tx: &mut Tx<'_>, turn: &TurnId, call_id: &str) -> Result<bool> {
    const SQL: &str = "SELECT COUNT(*) FROM intents WHERE turn_id = $1 AND call_id = $2 AND state = 'intent'";
    Ok(tx.query_one(SQL, params![turn, call_id], |row| row.int(0))?.unwrap_or(0) > 0)
}

pub fn finish_call(
    tx: &mut Tx<'_>,
    turn: &TurnId,
    call_id: &str,
    decision: ReplayDecision,
    now: Millis,
) -> Result<()> {
    const SQL: &str = "UPDATE intents SET state = $3, ended_at = $4 WHERE turn_id = $1 AND call_id = $2";
    let state = if decision == ReplayDecision::Run { "done" } else { "unknown" };
    tx.execute(SQL, params![turn, call_id, state, now]).map(drop)
}

/// Lists a turn's calls that were started and have no result, and whether each is read-only. The effect of the others
/// is unknown.
pub fn list_unfinished(tx: &mut Tx<'_>, turn: &TurnId) -> Result<Vec<(String, bool)>> {
    const SQL: &str = "SELECT call_id, effect FROM intents WHERE turn_id = $1 AND state = 'intent'";
    tx.query(SQL, params![turn], |row| Ok((row.text(0)?, row.text(1)? == ToolEffect::Pure.as_str())))
}
