//! Stored responses of calls with an idempotency key.

use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::Tx;

/// The state of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdempotencyState {
    /// The key is new, and its call is now running.
    Started,
    /// The first call with this key is still running.
    UnderWay,
    /// The key was used for a different request.
    Other,
    Answered {
        status: u16,
        body: String,
    },
}

/// A call: its caller, its key and its request.
#[derive(Clone, Debug)]
pub struct IdempotentCall {
    pub caller: String,
    pub key: String,
    /// Hash of the method, path and body.
    pub request: String,
}

/// Looks a key up and claims it if it is free. Responses from before `oldest` are deleted.
pub fn begin_call(
    tx: &mut Tx<'_>,
    call: &IdempotentCall,
    now: Millis,
    oldest: Millis,
) -> Result<IdempotencyState> {
    const DELETE_OLD: &str = "DELETE FROM idempotent_responses WHERE created_at < $1";
    const FIND: &str =
        "SELECT request, status, body FROM idempotent_responses WHERE caller = $1 AND key = $2";
    const INSERT_CALL: &str =
        "INSERT INTO idempotent_responses (caller, key, request, created_at) VALUES ($1, $2, $3, $4)";
    tx.execute(DELETE_OLD, params![oldest])?;
    let found = tx.query_one(FIND, params![&call.caller, &call.key], |row| {
        Ok((row.text(0)?, row.opt_int(1)?, row.opt_text(2)?))
    })?;
    let Some((request, status, body)) = found else {
        tx.execute(INSERT_CALL, params![&call.caller, &call.key, &call.request, now])?;
        return Ok(IdempotencyState::Started);
    };
    Ok(match status.and_then(|status| u16::try_from(status).ok()) {
        _ if request != call.request => IdempotencyState::Other,
        Some(status) => IdempotencyState::Answered { status, body: body.unwrap_or_default() },
        None => IdempotencyState::UnderWay,
    })
}

pub fn record_response(tx: &mut Tx<'_>, call: &IdempotentCall, status: u16, body: &str) -> Result<()> {
    const SQL: &str = "UPDATE idempotent_responses SET status = $3, body = $4 WHERE caller = $1 AND key = $2";
    tx.execute(SQL, params![&call.caller, &call.key, u32::from(status), body]).map(drop)
}

/// Forgets a call whose response is not kept, so that a repeat runs it again.
pub fn delete_call(tx: &mut Tx<'_>, call: &IdempotentCall) -> Result<()> {
    const SQL: &str = "DELETE FROM idempotent_responses WHERE caller = $1 AND key = $2";
    tx.execute(SQL, params![&call.caller, &call.key]).map(drop)
}

/// Deletes the calls that were running when the server died.
pub fn delete_unfinished(tx: &mut Tx<'_>) -> Result<()> {
    const SQL: &str = "DELETE FROM idempotent_responses WHERE status IS NULL";
    tx.execute(SQL, &[]).map(drop)
}
