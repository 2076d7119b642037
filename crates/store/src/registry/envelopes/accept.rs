//! Accepts a message: runs all checks, then inserts the row.

use polyclaw_domain::envelope::{EnvelopeEventKind, EnvelopeState, IDEMPOTENCY_KEY_TTL_MS};
use polyclaw_domain::id::{EnvelopeId, InstanceId};
use polyclaw_domain::instance::InstanceName;
use polyclaw_domain::relay::MAX_HOPS;
use polyclaw_domain::time::Millis;

use super::events::{self, EnvelopeEvent, EnvelopeRef};
use crate::error::Result;
use crate::params;
use crate::registry::rules::{self, RoutingRule};
use crate::registry::{self, InstanceRecord};
use crate::tx::Tx;

/// A message as submitted by its sender.
#[derive(Clone, Debug)]
pub struct EnvelopeDraft {
    pub id: EnvelopeId,
    /// By id or name.
    pub from: String,
    pub to: String,
    pub kind: String,
    pub payload: EnvelopePayload,
    pub correlation: Option<String>,
    pub key: Option<String>,
    /// Hop count claimed by the sender. It is raised to the highest hop count recorded here.
    pub hop: u32,
    pub trace: Option<String>,
    pub now: Millis,
}

#[derive(Clone, Debug)]
pub enum EnvelopePayload {
    /// The redacted payload, and whether anything was redacted.
    Clean { json: String, redacted: bool },
    /// Too large; the size in bytes.
    TooLarge(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedEnvelope {
    pub id: EnvelopeId,
    /// Both with their names.
    pub from: (InstanceId, InstanceName),
    pub to: (InstanceId, InstanceName),
    pub hop: u32,
    pub expires_at: Millis,
    pub redacted: bool,
    /// Whether to start the recipient if it is not running.
    pub auto_start: bool,
}

#[derive(Clone, Debug)]
pub enum EnvelopeVerdict {
    Accepted(AcceptedEnvelope, Vec<EnvelopeEvent>),
    /// An earlier message with the same idempotency key.
    Repeated(EnvelopeId, EnvelopeState),
    Refused(EnvelopeRefusal),
}

/// Why a message is rejected, in the order of the checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvelopeRefusal {
    Unknown(String),
    Archived(String),
    TooLarge(usize),
    TooManyHops(u32),
    NoRule { from: String, to: String, kind: String },
}

pub fn accept_envelope(tx: &mut Tx<'_>, draft: &EnvelopeDraft) -> Result<EnvelopeVerdict> {
    let (from, to) = (find_active_instance(tx, &draft.from)?, find_active_instance(tx, &draft.to)?);
    let (from, to) = match (from, to) {
        (Ok(from), Ok(to)) => (from, to),
        (Err(refused), _) | (_, Err(refused)) => return Ok(EnvelopeVerdict::Refused(refused)),
    };
    let (json, redacted) = match &draft.payload {
        EnvelopePayload::Clean { json, redacted } => (json, *redacted),
        EnvelopePayload::TooLarge(bytes) => {
            return Ok(EnvelopeVerdict::Refused(EnvelopeRefusal::TooLarge(*bytes)));
        }
    };
    let hop = compute_hop(tx, draft, &from)?;
    if hop >= MAX_HOPS {
        return Ok(EnvelopeVerdict::Refused(EnvelopeRefusal::TooManyHops(hop)));
    }
    let Some(rule) = rules::find_best_match(tx, &from.id, &to.id, &draft.kind)? else {
        let (from, to) = (from.name.to_string(), to.name.to_string());
        return Ok(EnvelopeVerdict::Refused(EnvelopeRefusal::NoRule { from, to, kind: draft.kind.clone() }));
    };
    if let Some((id, state)) = find_repeated(tx, draft, &from.id)? {
        return Ok(EnvelopeVerdict::Repeated(id, state));
    }
    let accepted = AcceptedEnvelope {
        id: draft.id.clone(),
        from: (from.id, from.name),
        to: (to.id, to.name),
        hop,
        expires_at: draft.now.plus(i64::from(rule.ttl_secs) * 1000),
        redacted,
        auto_start: rule.auto_start,
    };
    let events = insert_envelope(tx, draft, json, &accepted, &rule)?;
    Ok(EnvelopeVerdict::Accepted(accepted, events))
}

fn find_active_instance(
    tx: &mut Tx<'_>,
    word: &str,
) -> Result<std::result::Result<InstanceRecord, EnvelopeRefusal>> {
    Ok(match registry::find_by_id_or_name(tx, word)? {
        None => Err(EnvelopeRefusal::Unknown(word.to_owned())),
        Some(one) if one.archived_at.is_some() => Err(EnvelopeRefusal::Archived(one.name.to_string())),
        Some(one) => Ok(one),
    })
}

/// Returns one more than the highest hop count that the sender received under the same correlation. What it passes on
/// or answers has come at least that far, whatever it claims.
fn compute_hop(tx: &mut Tx<'_>, draft: &EnvelopeDraft, from: &InstanceRecord) -> Result<u32> {
    const HOP_BY_CORRELATION: &str =
        "SELECT MAX(hop_count) FROM messages WHERE correlation_id = $1 AND recipient = $2";
    const HOP_BY_ID: &str = "SELECT hop_count FROM messages WHERE id = $1 AND recipient = $2";
    let Some(correlation) = &draft.correlation else { return Ok(draft.hop) };
    let mut known = draft.hop;
    for sql in [HOP_BY_CORRELATION, HOP_BY_ID] {
        let found = tx.query_one(sql, params![correlation, &from.id], |row| row.opt_int(0))?;
        let found = found.flatten().and_then(|hop| u32::try_from(hop).ok());
        known = known.max(found.map_or(0, |hop| hop + 1));
    }
    Ok(known)
}

fn find_repeated(
    tx: &mut Tx<'_>,
    draft: &EnvelopeDraft,
    from: &InstanceId,
) -> Result<Option<(EnvelopeId, EnvelopeState)>> {
    const SQL: &str = "SELECT message_id, state FROM message_keys JOIN messages ON messages.id = message_id
        WHERE message_keys.sender = $1 AND key = $2 AND message_keys.created_at > $3";
    let Some(key) = &draft.key else { return Ok(None) };
    let oldest = draft.now.minus(IDEMPOTENCY_KEY_TTL_MS);
    tx.query_one(SQL, params![from, key, oldest], |row| {
        Ok((EnvelopeId::new(row.text(0)?), row.parse_column(1, EnvelopeState::parse)?))
    })
}

fn insert_envelope(
    tx: &mut Tx<'_>,
    draft: &EnvelopeDraft,
    json: &str,
    accepted: &AcceptedEnvelope,
    rule: &RoutingRule,
) -> Result<Vec<EnvelopeEvent>> {
    const SQL: &str = "INSERT INTO messages (id, sender, recipient, type, payload, redacted, correlation_id,
          idempotency_key, hop_count, state, max_retries, ttl_ms, auto_start, due_at, expires_at, created_at, updated_at,
          trace_id)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'queued', $10, $11, $12, $13, $14, $13, $13, $15) RETURNING seq";
    const UPSERT_KEY: &str = "INSERT INTO message_keys (sender, key, message_id, created_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (sender, key) DO UPDATE SET message_id = excluded.message_id, created_at = excluded.created_at";
    let ((from, from_name), (to, to_name)) = (&accepted.from, &accepted.to);
    let params = params![
        &draft.id,
        from,
        to,
        &draft.kind,
        json,
        accepted.redacted,
        draft.correlation.as_ref(),
        draft.key.as_ref(),
        accepted.hop,
        rule.max_retries,
        i64::from(rule.ttl_secs) * 1000,
        rule.auto_start,
        draft.now,
        accepted.expires_at,
        draft.trace.as_ref()
    ];
    let seq = tx.query_one(SQL, params, |row| row.int(0))?.unwrap_or_default();
    if let Some(key) = &draft.key {
        tx.execute(UPSERT_KEY, params![from, key, &draft.id, draft.now])?;
    }
    let about = EnvelopeRef {
        seq,
        id: draft.id.clone(),
        from: from.clone(),
        to: to.clone(),
        from_name: Some(from_name.to_string()),
        to_name: Some(to_name.to_string()),
        kind: draft.kind.clone(),
        correlation: draft.correlation.clone(),
    };
    let mut note = |kind| events::record_event(tx, &about, (kind, EnvelopeState::Queued), None, draft.now);
    Ok(vec![note(EnvelopeEventKind::Created)?, note(EnvelopeEventKind::Queued)?])
}

/// Deletes expired idempotency keys.
pub fn delete_expired_keys(tx: &mut Tx<'_>, now: Millis) -> Result<()> {
    const SQL: &str = "DELETE FROM message_keys WHERE created_at <= $1";
    tx.execute(SQL, params![now.minus(IDEMPOTENCY_KEY_TTL_MS)]).map(drop)
}
