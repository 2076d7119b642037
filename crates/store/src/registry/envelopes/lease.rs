//! Leasing messages to recipients. A lease is one conditional update, so nobody else gets the same messages.

use polyclaw_domain::envelope::{ENVELOPE_LEASE_MS, EnvelopeEventKind, EnvelopeState};
use polyclaw_domain::id::{EnvelopeId, InstanceId};
use polyclaw_domain::time::Millis;

use super::events::{self, EnvelopeEvent, EnvelopeRef};
use super::outcome::retry_or_dead_letter;
use super::{StoredEnvelope, envelope_from_row};
use crate::error::Result;
use crate::params;
use crate::tx::Tx;

/// A request for messages.
#[derive(Clone, Debug)]
pub struct EnvelopePoll {
    pub to: InstanceId,
    /// Id of the lease, under which the messages are acknowledged.
    pub lease: String,
    /// The client chose the lease id itself and may have sent this request before.
    pub asks_again: bool,
    /// Identifies one process of the client, if it sends one.
    pub process_epoch: Option<String>,
    /// Only responses, which must not wait behind requests for more work.
    pub only_answers: bool,
    pub limit: usize,
    pub now: Millis,
}

/// Leases the due messages, oldest first. A repeated request with the same lease id returns the same messages.
pub fn lease_due(tx: &mut Tx<'_>, poll: &EnvelopePoll) -> Result<(Vec<StoredEnvelope>, Vec<EnvelopeEvent>)> {
    const FIND_LEASED: &str =
        select!("WHERE state = 'delivered' AND recipient = $1 AND lease = $2 ORDER BY seq");
    const SQL: &str = concat!(
        "UPDATE messages SET state = 'delivered', attempts = attempts + 1, lease = $2, process_epoch = $3, due_at = $4,
           updated_at = $5
         WHERE seq IN (SELECT seq FROM messages WHERE recipient = $1 AND state IN ('queued', 'failed')
             AND due_at <= $5 AND expires_at > $5
             AND ($7 = 0 OR type IN ('response', 'task.result', 'task.status')) ORDER BY due_at, seq LIMIT $6)
           AND state IN ('queued', 'failed')
         RETURNING ",
        columns!()
    );
    if poll.asks_again {
        let held = tx.query(FIND_LEASED, params![&poll.to, &poll.lease], envelope_from_row)?;
        if !held.is_empty() {
            return Ok((held, Vec::new()));
        }
    }
    let until = poll.now.plus(ENVELOPE_LEASE_MS);
    let params = params![
        &poll.to,
        &poll.lease,
        poll.process_epoch.as_ref(),
        until,
        poll.now,
        poll.limit,
        poll.only_answers
    ];
    let mut taken = tx.query(SQL, params, envelope_from_row)?;
    taken.sort_by_key(|one| one.seq);
    let mut events = Vec::with_capacity(2 * taken.len());
    for one in &taken {
        let attempt = format!("attempt {} of {}", one.attempts, one.max_retries);
        let about = EnvelopeRef::from(one);
        for (kind, detail) in [
            (EnvelopeEventKind::DeliveryAttempted, Some(attempt.as_str())),
            (EnvelopeEventKind::Delivered, None),
        ] {
            events.push(events::record_event(
                tx,
                &about,
                (kind, EnvelopeState::Delivered),
                detail,
                poll.now,
            )?);
        }
    }
    Ok((taken, events))
}

/// Requeues the messages leased by an earlier process of the client, so that they can be leased again immediately.
pub fn requeue_earlier_epochs(
    tx: &mut Tx<'_>,
    to: &InstanceId,
    life: &str,
    now: Millis,
) -> Result<Vec<EnvelopeEvent>> {
    const SQL: &str = select!(
        "WHERE state = 'delivered' AND recipient = $1 AND process_epoch IS NOT NULL AND process_epoch <> $2"
    );
    let mut events = Vec::new();
    for one in tx.query(SQL, params![to, life], envelope_from_row)? {
        events.extend(retry_or_dead_letter(tx, &one, "the process that held it ended", Some(now), now)?);
    }
    Ok(events)
}

/// Returns when the next message of a recipient is due.
pub fn next_due_at(tx: &mut Tx<'_>, to: &InstanceId) -> Result<Option<Millis>> {
    const SQL: &str = "SELECT due_at FROM messages WHERE recipient = $1 AND state IN ('queued', 'failed')
        ORDER BY due_at, seq LIMIT 1";
    tx.query_one(SQL, params![to], |row| row.time(0))
}

/// Renews the lease of a message that takes longer, and returns its new end; `None` if the lease is lost.
pub fn renew_lease(tx: &mut Tx<'_>, id: &EnvelopeId, lease: &str, now: Millis) -> Result<Option<Millis>> {
    const SQL: &str = "UPDATE messages SET due_at = $3, updated_at = $4
        WHERE id = $1 AND state = 'delivered' AND lease = $2";
    let until = now.plus(ENVELOPE_LEASE_MS);
    Ok((tx.execute(SQL, params![id, lease, until, now])? == 1).then_some(until))
}
