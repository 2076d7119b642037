//! Approvals: durable questions to a person. A call has one, and it is answered once.

use polyclaw_domain::approval::{ApprovalBinding, ApprovalState};
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::{ApprovalId, TurnId};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use serde_json::Value;

use crate::error::Result;
use crate::messages::{from_json, to_json};
use crate::params;
use crate::tx::{Row, Tx};

#[derive(Clone, Debug)]
pub struct StoredApproval {
    pub id: ApprovalId,
    pub session: SessionKey,
    pub turn: TurnId,
    pub call_id: String,
    pub tool: String,
    pub arguments: Value,
    /// Fingerprint of the tool and its arguments, so that exactly the approved call runs.
    pub fingerprint: String,
    /// The channel conversation in which it was asked; `None` if the owner answers in place.
    pub origin: Option<ChatAddress>,
    /// The question in plain words.
    pub question: String,
    /// Name of the requesting agent or team member; empty in old rows.
    pub requested_by: String,
    pub state: ApprovalState,
    pub reason: Option<String>,
    /// The person who answered.
    pub decided_by: Option<String>,
    pub expires_at: Millis,
    pub created_at: Millis,
}

impl StoredApproval {
    pub fn approval_binding(&self) -> ApprovalBinding<'_> {
        ApprovalBinding { origin: self.origin.as_ref(), fingerprint: &self.fingerprint }
    }
}

/// Reason of a question that was closed before it expired.
pub const TURN_ENDED_REASON: &str = "its turn has ended";

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, session_key, turn_id, call_id, tool, arguments_json, state, reason, expires_at,
             created_at, fingerprint, origin_json, question, decided_by, requested_by FROM approvals ",
            $rest
        )
    };
}

/// Stores a question, unless this call has one already. Returns the stored question and whether it is new.
pub fn insert_once(tx: &mut Tx<'_>, approval: &StoredApproval) -> Result<(StoredApproval, bool)> {
    const SQL: &str = "INSERT INTO approvals (id, session_key, turn_id, call_id, tool, arguments_json, state,
          expires_at, created_at, fingerprint, origin_json, question, requested_by)
        VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, $8, $9, $10, $11, $12)
        ON CONFLICT (turn_id, call_id) DO NOTHING";
    let origin = approval.origin.as_ref().map(to_json).transpose()?;
    let inserted = tx.execute(
        SQL,
        params![
            &approval.id,
            &approval.session,
            &approval.turn,
            &approval.call_id,
            &approval.tool,
            &to_json(&approval.arguments)?,
            approval.expires_at,
            approval.created_at,
            &approval.fingerprint,
            origin.as_ref(),
            &approval.question,
            &approval.requested_by,
        ],
    )?;
    let stored = select!("WHERE turn_id = $1 AND call_id = $2");
    let stored = tx.query_one(stored, params![&approval.turn, &approval.call_id], approval_from_row)?;
    Ok((stored.unwrap_or_else(|| approval.clone()), inserted == 1))
}

pub fn get(tx: &mut Tx<'_>, id: &ApprovalId) -> Result<Option<StoredApproval>> {
    tx.query_one(select!("WHERE id = $1"), params![id], approval_from_row)
}

/// When an answer arrived.
#[derive(Clone, Copy, Debug)]
pub struct DecisionTime {
    /// Wall-clock time, for the record.
    pub now: Millis,
    /// Time compared with the expiry. It differs from `now` if the clock was set since the question was asked.
    pub counted: Millis,
}

impl From<Millis> for DecisionTime {
    fn from(now: Millis) -> Self {
        Self { now, counted: now }
    }
}

/// Answers a pending question. Returns `false` if it was answered before or has expired.
pub fn record_decision(
    tx: &mut Tx<'_>,
    id: &ApprovalId,
    state: ApprovalState,
    (reason, by): (Option<&str>, Option<&str>),
    DecisionTime { now, counted }: DecisionTime,
) -> Result<bool> {
    const SQL: &str = "UPDATE approvals SET state = $2, reason = $3, decided_at = $4, decided_by = $5
        WHERE id = $1 AND state = 'pending' AND (expires_at > $6 OR $2 = 'expired')";
    Ok(tx.execute(SQL, params![id, state.as_str(), reason, now, by, counted])? == 1)
}

/// Closes the questions of a turn that has ended, because nothing waits for their answers.
pub fn expire_by_turn(tx: &mut Tx<'_>, turn: &TurnId, now: Millis) -> Result<()> {
    const SQL: &str = "UPDATE approvals SET state = 'expired', decided_at = $2, reason = $3
        WHERE turn_id = $1 AND state = 'pending'";
    tx.execute(SQL, params![turn, now, TURN_ENDED_REASON]).map(drop)
}

/// Whether a turn waits for an answer, or has an approval that it has not used yet.
pub fn is_turn_waiting(tx: &mut Tx<'_>, turn: &TurnId, now: Millis) -> Result<bool> {
    const SQL: &str = "SELECT COUNT(*) FROM approvals WHERE turn_id = $1
        AND (state = 'pending' AND expires_at > $2
          OR state = 'approved' AND NOT EXISTS (SELECT 1 FROM intents i
            WHERE i.turn_id = approvals.turn_id AND i.call_id = approvals.call_id))";
    Ok(tx.query_one(SQL, params![turn, now], |row| row.int(0))?.unwrap_or(0) > 0)
}

/// Lists unanswered questions, earliest expiry first. Waiters decide themselves whether one has expired.
pub fn list_pending(tx: &mut Tx<'_>) -> Result<Vec<StoredApproval>> {
    tx.query(select!("WHERE state = 'pending' ORDER BY expires_at, id"), &[], approval_from_row)
}

fn approval_from_row(row: &Row<'_>) -> Result<StoredApproval> {
    Ok(StoredApproval {
        id: ApprovalId::new(row.text(0)?),
        session: row.session_key(1)?,
        turn: TurnId::new(row.text(2)?),
        call_id: row.text(3)?,
        tool: row.text(4)?,
        arguments: from_json(&row.text(5)?)?,
        state: row.parse_column(6, ApprovalState::parse)?,
        reason: row.opt_text(7)?,
        expires_at: row.time(8)?,
        created_at: row.time(9)?,
        fingerprint: row.text(10)?,
        origin: row.opt_text(11)?.map(|json| from_json(&json)).transpose()?,
        question: row.text(12)?,
        decided_by: row.opt_text(13)?,
        requested_by: row.text(14)?,
    })
}
