//! Schedules: up to when each has been looked after.

use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::Tx;

/// Up to when a schedule has been looked after. One that is new, or has another rule than before, begins now.
pub fn last_due(tx: &mut Tx<'_>, id: &str, rule: &str, now: Millis) -> Result<Millis> {
    const FIND: &str = "SELECT last_due FROM schedules WHERE schedule_id = $1 AND rule = $2";
    const BEGIN: &str =
        "INSERT INTO schedules (schedule_id, rule, last_due, updated_at) VALUES ($1, $2, $3, $3)
        ON CONFLICT (schedule_id) DO UPDATE SET rule = excluded.rule, last_due = excluded.last_due,
            updated_at = excluded.updated_at";
    if let Some(last) = tx.query_one(FIND, params![id, rule], |row| row.int(0))? {
        return Ok(Millis(last));
    }
    tx.execute(BEGIN, params![id, rule, now])?;
    Ok(now)
}

/// Up to when it has been looked after, without beginning it.
pub fn find(tx: &mut Tx<'_>, id: &str) -> Result<Option<Millis>> {
    const SQL: &str = "SELECT last_due FROM schedules WHERE schedule_id = $1";
    Ok(tx.query_one(SQL, params![id], |row| row.int(0))?.map(Millis))
}

/// A due time has been run or left out. Never goes back.
pub fn advance(tx: &mut Tx<'_>, id: &str, due: Millis, now: Millis) -> Result<()> {
    const SQL: &str = "UPDATE schedules SET last_due = $2, updated_at = $3
        WHERE schedule_id = $1 AND last_due < $2";
    tx.execute(SQL, params![id, due, now]).map(drop)
}
