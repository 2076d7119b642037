//! Ingress: a platform message id is accepted once in seven days; a trace has a budget of automatic turns.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::{MessageId, TraceId};
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::Tx;

const RETAINED_DEDUP_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// Returns the message that an earlier delivery of the same platform message became.
pub fn find_duplicate(
    tx: &mut Tx<'_>,
    address: &ChatAddress,
    platform_id: &str,
) -> Result<Option<MessageId>> {
    const SQL: &str =
        "SELECT message_id FROM inbound_dedup WHERE channel = $1 AND account = $2 AND platform_id = $3";
    let params = params![&address.channel, &address.account, platform_id];
    Ok(tx.query_one(SQL, params, |row| row.text(0))?.map(MessageId::new))
}

pub fn record_platform_id(
    tx: &mut Tx<'_>,
    address: &ChatAddress,
    platform_id: &str,
    message: &MessageId,
    now: Millis,
) -> Result<()> {
    const SQL: &str = "INSERT INTO inbound_dedup (channel, account, platform_id, message_id, created_at)
        VALUES ($1, $2, $3, $4, $5)";
    tx.execute(SQL, params![&address.channel, &address.account, platform_id, message, now]).map(drop)
}

/// Deletes ids that no platform redelivers any more.
pub fn delete_expired(tx: &mut Tx<'_>, now: Millis) -> Result<usize> {
    tx.execute("DELETE FROM inbound_dedup WHERE created_at < $1", params![now.minus(RETAINED_DEDUP_MS)])
}

pub fn get_automatic_turns(tx: &mut Tx<'_>, trace: &TraceId) -> Result<u32> {
    const SQL: &str = "SELECT autonomous_turns FROM traces WHERE trace_id = $1";
    Ok(tx.query_one(SQL, params![trace], |row| row.as_u32(0))?.unwrap_or(0))
}

/// Resets the count when a person continues the trace.
pub fn reset_automatic_turns(tx: &mut Tx<'_>, trace: &TraceId) -> Result<()> {
    tx.execute("DELETE FROM traces WHERE trace_id = $1", params![trace]).map(drop)
}

pub fn increment_automatic_turns(tx: &mut Tx<'_>, trace: &TraceId, now: Millis) -> Result<()> {
    const SQL: &str = "INSERT INTO traces (trace_id, autonomous_turns, created_at) VALUES ($1, 1, $2)
        ON CONFLICT (trace_id) DO UPDATE SET autonomous_turns = traces.autonomous_turns + 1";
    tx.execute(SQL, params![trace, now]).map(drop)
}
