//! The outcome of leased messages, and of messages that nobody fetched.

use polyclaw_domain::envelope::{
    EXPIRED_REASON, EnvelopeEventKind, EnvelopeRetryDecision, EnvelopeState, decide_retry,
};
use polyclaw_domain::id::{EnvelopeId, InstanceId};
use polyclaw_domain::time::Millis;

use super::events::{self, EnvelopeEvent, EnvelopeRef};
use super::{StoredEnvelope, envelope_from_row, find};
use crate::error::Result;
use crate::params;
use crate::registry;
use crate::tx::Tx;

/// The result of an acknowledgement or failure report.
#[derive(Clone, Debug)]
pub enum AckOutcome {
    Done(Box<StoredEnvelope>, Vec<EnvelopeEvent>),
    /// It was acknowledged before under the same lease.
    AlreadySettled(Box<StoredEnvelope>),
    /// The lease belongs to somebody else by now, or the message is settled.
    Lost,
    Unknown,
}

/// Acknowledges a message for good.
pub fn acknowledge(tx: &mut Tx<'_>, id: &EnvelopeId, lease: &str, now: Millis) -> Result<AckOutcome> {
    const SQL: &str = "UPDATE messages SET state = 'acknowledged', error = NULL, updated_at = $3
        WHERE id = $1 AND state = 'delivered' AND lease = $2";
    let done = tx.execute(SQL, params![id, lease, now])? == 1;
    let Some(one) = find::get(tx, id)? else { return Ok(AckOutcome::Unknown) };
    if done {
        let what = (EnvelopeEventKind::Acknowledged, EnvelopeState::Acknowledged);
        let events = events::record_event(tx, &EnvelopeRef::from(&one), what, None, now)?;
        return Ok(AckOutcome::Done(Box::new(one), vec![events]));
    }
    let before = one.state == EnvelopeState::Acknowledged && one.lease.as_deref() == Some(lease);
    Ok(if before { AckOutcome::AlreadySettled(Box::new(one)) } else { AckOutcome::Lost })
}

/// Reports that a message could not be processed now.
pub fn fail_delivery(
    tx: &mut Tx<'_>,
    id: &EnvelopeId,
    lease: &str,
    why: &str,
    now: Millis,
) -> Result<AckOutcome> {
    let Some(one) = find::get(tx, id)? else { return Ok(AckOutcome::Unknown) };
    if one.state != EnvelopeState::Delivered || one.lease.as_deref() != Some(lease) {
        return Ok(AckOutcome::Lost);
    }
    let events = retry_or_dead_letter(tx, &one, why, None, now)?;
    Ok(find::get(tx, id)?.map_or(AckOutcome::Unknown, |one| AckOutcome::Done(Box::new(one), events)))
}

/// Ends a message's lease: it is retried, at `soon` if given, or becomes a dead letter.
pub(super) fn retry_or_dead_letter(
    tx: &mut Tx<'_>,
    one: &StoredEnvelope,
    why: &str,
    soon: Option<Millis>,
    now: Millis,
) -> Result<Vec<EnvelopeEvent>> {
    const SQL: &str =
        "UPDATE messages SET state = 'failed', lease = NULL, process_epoch = NULL, error = $3, due_at = $4,
          updated_at = $5 WHERE seq = $1 AND state = 'delivered' AND lease = $2";
    let next = decide_retry((one.attempts, one.max_retries), one.expires_at, now, one.seq);
    let (due, end) = match next {
        EnvelopeRetryDecision::RetryAt(at) => (soon.unwrap_or(at), None),
        EnvelopeRetryDecision::Dead(end) => (now, Some(end)),
    };
    if tx.execute(SQL, params![one.seq, one.lease.as_ref(), why, due, now])? == 0 {
        return Ok(Vec::new());
    }
    let mut notice = vec![events::record_event(
        tx,
        &EnvelopeRef::from(one),
        (EnvelopeEventKind::Failed, EnvelopeState::Failed),
        Some(why),
        now,
    )?];
    if let Some(end) = end {
        notice.extend(dead_letter(tx, one, end, now)?);
    }
    Ok(notice)
}

/// Turns a waiting message into a dead letter.
fn dead_letter(
    tx: &mut Tx<'_>,
    one: &StoredEnvelope,
    why: &str,
    now: Millis,
) -> Result<Option<EnvelopeEvent>> {
    const SQL: &str = "UPDATE messages SET state = 'dead_letter', error = COALESCE(error || '; ', '') || $2,
          updated_at = $3 WHERE seq = $1 AND state IN ('queued', 'failed')";
    if tx.execute(SQL, params![one.seq, why, now])? == 0 {
        return Ok(None);
    }
    let what = (EnvelopeEventKind::DeadLettered, EnvelopeState::DeadLetter);
    events::record_event(tx, &EnvelopeRef::from(one), what, Some(why), now).map(Some)
}

/// Handles leases that ended without an answer and messages that expired, at most `limit` of each.
pub fn sweep_expired(tx: &mut Tx<'_>, now: Millis, limit: usize) -> Result<Vec<EnvelopeEvent>> {
    const FIND_LEASES_ENDED: &str =
        select!("WHERE state = 'delivered' AND due_at <= $1 ORDER BY due_at LIMIT $2");
    const FIND_EXPIRED: &str =
        select!("WHERE state IN ('queued', 'failed') AND expires_at <= $1 ORDER BY expires_at LIMIT $2");
    let mut events = Vec::new();
    for one in tx.query(FIND_LEASES_ENDED, params![now, limit], envelope_from_row)? {
        events.extend(retry_or_dead_letter(
            tx,
            &one,
            "its lease expired without an acknowledgment",
            None,
            now,
        )?);
    }
    for one in tx.query(FIND_EXPIRED, params![now, limit], envelope_from_row)? {
        events.extend(dead_letter(tx, &one, EXPIRED_REASON, now)?);
    }
    Ok(events)
}

/// Lists the recipients of waiting messages whose rule starts them automatically.
pub fn list_recipients_to_start(tx: &mut Tx<'_>) -> Result<Vec<InstanceId>> {
    const SQL: &str = "SELECT DISTINCT recipient FROM messages
        WHERE auto_start = 1 AND state IN ('queued', 'failed')";
    tx.query(SQL, &[], |row| Ok(InstanceId::new(row.text(0)?)))
}

/// The result of replaying a dead letter.
#[derive(Clone, Debug)]
pub enum ReplayOutcome {
    Done(Box<StoredEnvelope>, Vec<EnvelopeEvent>),
    NotDead(EnvelopeState),
    /// The recipient was deleted.
    RecipientGone,
    Unknown,
}

/// Queues a dead letter again, with all attempts and its full time to live.
pub fn replay_dead_letter(tx: &mut Tx<'_>, id: &EnvelopeId, now: Millis) -> Result<ReplayOutcome> {
    const SQL: &str =
        "UPDATE messages SET state = 'queued', attempts = 0, lease = NULL, process_epoch = NULL, error = NULL,
          due_at = $2, expires_at = $2 + ttl_ms, updated_at = $2 WHERE id = $1 AND state = 'dead_letter'";
    let Some(one) = find::get(tx, id)? else { return Ok(ReplayOutcome::Unknown) };
    if one.state != EnvelopeState::DeadLetter {
        return Ok(ReplayOutcome::NotDead(one.state));
    }
    if registry::get(tx, &one.to)?.is_none() {
        return Ok(ReplayOutcome::RecipientGone);
    }
    tx.execute(SQL, params![id, now])?;
    let mut events = Vec::new();
    for kind in [EnvelopeEventKind::Replayed, EnvelopeEventKind::Queued] {
        events.push(events::record_event(
            tx,
            &EnvelopeRef::from(&one),
            (kind, EnvelopeState::Queued),
            None,
            now,
        )?);
    }
    Ok(find::get(tx, id)?.map_or(ReplayOutcome::Unknown, |one| ReplayOutcome::Done(Box::new(one), events)))
}
