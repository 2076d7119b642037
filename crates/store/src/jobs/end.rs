//! The end of a turn, and the next turn of its session.

use polyclaw_domain::id::MessageId;
use polyclaw_domain::job::{JobLane, JobState};
use polyclaw_domain::provider::TokenUsage;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;

use crate::error::{Error, Result};
use crate::jobs::TurnClaim;
use crate::params;
use crate::tx::Tx;

#[derive(Clone, Debug)]
pub struct TurnJobEnd {
    pub state: JobState,
    pub model: Option<String>,
    pub usage: TokenUsage,
    pub reply: Option<MessageId>,
    pub error_code: Option<&'static str>,
    pub error: Option<String>,
}

/// Ends a claimed turn. Fails if the claim was taken over, which rolls the transaction back.
pub fn end_turn(tx: &mut Tx<'_>, claim: &TurnClaim, end: &TurnJobEnd, now: Millis) -> Result<()> {
    const SQL: &str = "UPDATE jobs SET state = $4, model = $5, input_tokens = $6, output_tokens = $7,
          cached_tokens = $8, reply_id = $9, error_code = $10, error = $11, ended_at = $12, lease_until = NULL
        WHERE turn_id = $1 AND node = $2 AND attempt = $3 AND state = 'running'";
    let tokens = |n: Option<u64>| n.and_then(|n| i64::try_from(n).ok());
    let changed = tx.execute(
        SQL,
        params![
            &claim.turn,
            &claim.node,
            claim.attempt,
            end.state.as_str(),
            end.model.as_ref(),
            tokens(end.usage.input_tokens),
            tokens(end.usage.output_tokens),
            tokens(end.usage.cached_tokens),
            end.reply.as_ref(),
            end.error_code,
            end.error.as_ref(),
            now,
        ],
    )?;
    if changed == 1 { Ok(()) } else { Err(Error::Conflict(format!("turn {} was taken over", claim.turn))) }
}

/// Releases the turn held behind this one and returns its lane; `None` if there is none. That is the usual case, so it
/// is checked first.
pub fn release_held(tx: &mut Tx<'_>, session: &SessionKey) -> Result<Option<JobLane>> {
    const FIND_HELD: &str = "SELECT lane FROM jobs WHERE session_key = $1 AND state = 'queued' AND held = 1";
    const RELEASE: &str = "UPDATE jobs SET held = 0 WHERE session_key = $1 AND state = 'queued'";
    let lane = tx.query_one(FIND_HELD, params![session], |row| row.parse_column(0, JobLane::parse))?;
    if lane.is_some() {
        tx.execute(RELEASE, params![session])?;
    }
    Ok(lane)
}

/// Releases a claim at a boundary. The next node resumes from the stored steps, and the attempt does not count as
/// failed.
pub fn release_claim(tx: &mut Tx<'_>, claim: &TurnClaim) -> Result<()> {
    const SQL: &str = "UPDATE jobs SET lease_until = 0, attempt = attempt - 1, node = 'handed-back'
        WHERE turn_id = $1 AND node = $2 AND attempt = $3 AND state = 'running'";
    tx.execute(SQL, params![&claim.turn, &claim.node, claim.attempt]).map(drop)
}
