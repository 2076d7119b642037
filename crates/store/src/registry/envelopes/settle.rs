//! What becomes of messages that were handed out, or that nobody came for.

use polyclaw_domain::envelope::{
    EXPIRED_REASON, EnvelopeEventKind, EnvelopeRetryDecision, EnvelopeState, decide_retry,
};
use polyclaw_domain::id::{EnvelopeId, InstanceId};
use polyclaw_domain::time::Millis;

use super::events::{self, About, Event};
use super::{Envelope, find, read};
use crate::error::Result;
use crate::params;
use crate::registry;
use crate::tx::Tx;

/// What came of the word of a leaseholder.
#[derive(Clone, Debug)]
pub enum Settled {
    Done(Box<Envelope>, Vec<Event>),
    /// It was settled so before, under the same lease.
    Before(Box<Envelope>),
    /// The lease is not theirs any more.
    Lost,
    Unknown,
}

/// It was taken up, once and for all.
pub fn acknowledge(tx: &mut Tx<'_>, id: &EnvelopeId, lease: &str, now: Millis) -> Result<Settled> {
    const SQL: &str = "UPDATE messages SET state = 'acknowledged', error = NULL, updated_at = $3
        WHERE id = $1 AND state = 'delivered' AND lease = $2";
    let done = tx.execute(SQL, params![id, lease, now])? == 1;
    let Some(one) = find::get(tx, id)? else { return Ok(Settled::Unknown) };
    if done {
        let what = (EnvelopeEventKind::Acknowledged, EnvelopeState::Acknowledged);
        let told = events::note(tx, &About::from(&one), what, None, now)?;
        return Ok(Settled::Done(Box::new(one), vec![told]));
    }
    let before = one.state == EnvelopeState::Acknowledged && one.lease.as_deref() == Some(lease);
    Ok(if before { Settled::Before(Box::new(one)) } else { Settled::Lost })
}

/// It could not be taken up now.
pub fn fail(tx: &mut Tx<'_>, id: &EnvelopeId, lease: &str, why: &str, now: Millis) -> Result<Settled> {
    let Some(one) = find::get(tx, id)? else { return Ok(Settled::Unknown) };
    if one.state != EnvelopeState::Delivered || one.lease.as_deref() != Some(lease) {
        return Ok(Settled::Lost);
    }
    let told = give_back(tx, &one, why, None, now)?;
    Ok(find::get(tx, id)?.map_or(Settled::Unknown, |one| Settled::Done(Box::new(one), told)))
}

/// Takes a message back from whoever had it: it is tried again, at `soon` if that is said, or given up.
pub(super) fn give_back(
    tx: &mut Tx<'_>,
    one: &Envelope,
    why: &str,
    soon: Option<Millis>,
    now: Millis,
) -> Result<Vec<Event>> {
    const SQL: &str =
        "UPDATE messages SET state = 'failed', lease = NULL, life = NULL, error = $3, due_at = $4,
          updated_at = $5 WHERE seq = $1 AND state = 'delivered' AND lease = $2";
    let next = decide_retry((one.attempts, one.max_retries), one.expires_at, now, one.seq);
    let (due, end) = match next {
        EnvelopeRetryDecision::RetryAt(at) => (soon.unwrap_or(at), None),
        EnvelopeRetryDecision::Dead(end) => (now, Some(end)),
    };
    if tx.execute(SQL, params![one.seq, one.lease.as_ref(), why, due, now])? == 0 {
        return Ok(Vec::new());
    }
    let mut told = vec![events::note(
        tx,
        &About::from(one),
        (EnvelopeEventKind::Failed, EnvelopeState::Failed),
        Some(why),
        now,
    )?];
    if let Some(end) = end {
        told.extend(bury(tx, one, end, now)?);
    }
    Ok(told)
}

/// Gives a message up that waits to be handed out.
fn bury(tx: &mut Tx<'_>, one: &Envelope, why: &str, now: Millis) -> Result<Option<Event>> {
    const SQL: &str = "UPDATE messages SET state = 'dead_letter', error = COALESCE(error || '; ', '') || $2,
          updated_at = $3 WHERE seq = $1 AND state IN ('queued', 'failed')";
    if tx.execute(SQL, params![one.seq, why, now])? == 0 {
        return Ok(None);
    }
    let what = (EnvelopeEventKind::DeadLettered, EnvelopeState::DeadLetter);
    events::note(tx, &About::from(one), what, Some(why), now).map(Some)
}

/// Leases that ended without a word, and messages whose time is over; at most so many of each.
pub fn sweep(tx: &mut Tx<'_>, now: Millis, limit: usize) -> Result<Vec<Event>> {
    const LEASED: &str = select!("WHERE state = 'delivered' AND due_at <= $1 ORDER BY due_at LIMIT $2");
    const LATE: &str =
        select!("WHERE state IN ('queued', 'failed') AND expires_at <= $1 ORDER BY expires_at LIMIT $2");
    let mut told = Vec::new();
    for one in tx.query(LEASED, params![now, limit], read)? {
        told.extend(give_back(tx, &one, "its lease ended without an answer", None, now)?);
    }
    for one in tx.query(LATE, params![now, limit], read)? {
        told.extend(bury(tx, &one, EXPIRED_REASON, now)?);
    }
    Ok(told)
}

/// Who is waited for by a message whose rule lets it start them.
pub fn waking(tx: &mut Tx<'_>) -> Result<Vec<InstanceId>> {
    const SQL: &str = "SELECT DISTINCT recipient FROM messages
        WHERE auto_start = 1 AND state IN ('queued', 'failed')";
    tx.query(SQL, &[], |row| Ok(InstanceId::new(row.text(0)?)))
}

/// What came of sending a dead letter again.
#[derive(Clone, Debug)]
pub enum Replayed {
    Done(Box<Envelope>, Vec<Event>),
    NotDead(EnvelopeState),
    /// Whoever it is for was deleted.
    RecipientGone,
    Unknown,
}

/// A dead letter begins anew, with all its attempts and all its time.
pub fn replay(tx: &mut Tx<'_>, id: &EnvelopeId, now: Millis) -> Result<Replayed> {
    const SQL: &str =
        "UPDATE messages SET state = 'queued', attempts = 0, lease = NULL, life = NULL, error = NULL,
          due_at = $2, expires_at = $2 + ttl_ms, updated_at = $2 WHERE id = $1 AND state = 'dead_letter'";
    let Some(one) = find::get(tx, id)? else { return Ok(Replayed::Unknown) };
    if one.state != EnvelopeState::DeadLetter {
        return Ok(Replayed::NotDead(one.state));
    }
    if registry::get(tx, &one.to)?.is_none() {
        return Ok(Replayed::RecipientGone);
    }
    tx.execute(SQL, params![id, now])?;
    let mut told = Vec::new();
    for kind in [EnvelopeEventKind::Replayed, EnvelopeEventKind::Queued] {
        told.push(events::note(tx, &About::from(&one), (kind, EnvelopeState::Queued), None, now)?);
    }
    Ok(find::get(tx, id)?.map_or(Replayed::Unknown, |one| Replayed::Done(Box::new(one), told)))
}
