//! Taking a message in: everything that is checked about it, and then the row.

use polyclaw_domain::envelope::{EnvelopeEventKind, EnvelopeState, IDEMPOTENCY_KEY_TTL_MS};
use polyclaw_domain::id::{EnvelopeId, InstanceId};
use polyclaw_domain::instance::InstanceName;
use polyclaw_domain::relay::MAX_HOPS;
use polyclaw_domain::time::Millis;

use super::events::{self, About, Event};
use crate::error::Result;
use crate::params;
use crate::registry::rules::{self, Rule};
use crate::registry::{self, Instance};
use crate::tx::Tx;

/// A message as its sender hands it in.
#[derive(Clone, Debug)]
pub struct Draft {
    pub id: EnvelopeId,
    /// By id or name.
    pub from: String,
    pub to: String,
    pub kind: String,
    pub payload: Payload,
    pub correlation: Option<String>,
    pub key: Option<String>,
    /// Through how many the sender knows it to have gone; never less than what is known here.
    pub hop: u32,
    pub trace: Option<String>,
    pub now: Millis,
}

#[derive(Clone, Debug)]
pub enum Payload {
    /// Without the secrets that were in it; whether there were any.
    Clean { json: String, redacted: bool },
    /// Too large: so many bytes.
    TooLarge(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub id: EnvelopeId,
    /// Both with their names.
    pub from: (InstanceId, InstanceName),
    pub to: (InstanceId, InstanceName),
    pub hop: u32,
    pub expires_at: Millis,
    pub redacted: bool,
    /// Whether the recipient is to be started where it is not running.
    pub auto_start: bool,
}

#[derive(Clone, Debug)]
pub enum Verdict {
    Accepted(Accepted, Vec<Event>),
    /// The sender's key stands for this one.
    Repeated(EnvelopeId, EnvelopeState),
    Refused(Refused),
}

/// Why a message is not taken, in the order in which it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    Unknown(String),
    Archived(String),
    TooLarge(usize),
    TooManyHops(u32),
    NoRule { from: String, to: String, kind: String },
}

pub fn accept(tx: &mut Tx<'_>, draft: &Draft) -> Result<Verdict> {
    let (from, to) = (active(tx, &draft.from)?, active(tx, &draft.to)?);
    let (from, to) = match (from, to) {
        (Ok(from), Ok(to)) => (from, to),
        (Err(refused), _) | (_, Err(refused)) => return Ok(Verdict::Refused(refused)),
    };
    let (json, redacted) = match &draft.payload {
        Payload::Clean { json, redacted } => (json, *redacted),
        Payload::TooLarge(bytes) => return Ok(Verdict::Refused(Refused::TooLarge(*bytes))),
    };
    let hop = hop(tx, draft, &from)?;
    if hop >= MAX_HOPS {
        return Ok(Verdict::Refused(Refused::TooManyHops(hop)));
    }
    let Some(rule) = rules::find(tx, &from.id, &to.id, &draft.kind)? else {
        let (from, to) = (from.name.to_string(), to.name.to_string());
        return Ok(Verdict::Refused(Refused::NoRule { from, to, kind: draft.kind.clone() }));
    };
    if let Some((id, state)) = repeated(tx, draft, &from.id)? {
        return Ok(Verdict::Repeated(id, state));
    }
    let accepted = Accepted {
        id: draft.id.clone(),
        from: (from.id, from.name),
        to: (to.id, to.name),
        hop,
        expires_at: draft.now.plus(i64::from(rule.ttl_secs) * 1000),
        redacted,
        auto_start: rule.auto_start,
    };
    let events = insert(tx, draft, json, &accepted, &rule)?;
    Ok(Verdict::Accepted(accepted, events))
}

fn active(tx: &mut Tx<'_>, word: &str) -> Result<std::result::Result<Instance, Refused>> {
    Ok(match registry::find(tx, word)? {
        None => Err(Refused::Unknown(word.to_owned())),
        Some(one) if one.archived_at.is_some() => Err(Refused::Archived(one.name.to_string())),
        Some(one) => Ok(one),
    })
}

/// One more than the longest way of anything the sender was sent under the same correlation: what it passes on or
/// answers has come at least that far, whatever it says.
fn hop(tx: &mut Tx<'_>, draft: &Draft, from: &Instance) -> Result<u32> {
    const TOGETHER: &str = "SELECT MAX(hop_count) FROM messages WHERE correlation_id = $1 AND recipient = $2";
    const NAMED: &str = "SELECT hop_count FROM messages WHERE id = $1 AND recipient = $2";
    let Some(correlation) = &draft.correlation else { return Ok(draft.hop) };
    let mut known = draft.hop;
    for sql in [TOGETHER, NAMED] {
        let found = tx.query_one(sql, params![correlation, &from.id], |row| row.opt_int(0))?;
        let found = found.flatten().and_then(|hop| u32::try_from(hop).ok());
        known = known.max(found.map_or(0, |hop| hop + 1));
    }
    Ok(known)
}

fn repeated(
    tx: &mut Tx<'_>,
    draft: &Draft,
    from: &InstanceId,
) -> Result<Option<(EnvelopeId, EnvelopeState)>> {
    const SQL: &str = "SELECT message_id, state FROM message_keys JOIN messages ON messages.id = message_id
        WHERE message_keys.sender = $1 AND key = $2 AND message_keys.created_at > $3";
    let Some(key) = &draft.key else { return Ok(None) };
    let oldest = draft.now.minus(IDEMPOTENCY_KEY_TTL_MS);
    tx.query_one(SQL, params![from, key, oldest], |row| {
        Ok((EnvelopeId::new(row.text(0)?), row.parsed(1, EnvelopeState::parse)?))
    })
}

fn insert(
    tx: &mut Tx<'_>,
    draft: &Draft,
    json: &str,
    accepted: &Accepted,
    rule: &Rule,
) -> Result<Vec<Event>> {
    const SQL: &str = "INSERT INTO messages (id, sender, recipient, type, payload, redacted, correlation_id,
          idempotency_key, hop_count, state, max_retries, ttl_ms, auto_start, due_at, expires_at, created_at, updated_at,
          trace_id)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'queued', $10, $11, $12, $13, $14, $13, $13, $15) RETURNING seq";
    const KEY: &str = "INSERT INTO message_keys (sender, key, message_id, created_at) VALUES ($1, $2, $3, $4)
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
        tx.execute(KEY, params![from, key, &draft.id, draft.now])?;
    }
    let about = About {
        seq,
        id: draft.id.clone(),
        from: from.clone(),
        to: to.clone(),
        from_name: Some(from_name.to_string()),
        to_name: Some(to_name.to_string()),
        kind: draft.kind.clone(),
        correlation: draft.correlation.clone(),
    };
    let mut note = |kind| events::note(tx, &about, (kind, EnvelopeState::Queued), None, draft.now);
    Ok(vec![note(EnvelopeEventKind::Created)?, note(EnvelopeEventKind::Queued)?])
}

/// Keys that stand for nothing any more.
pub fn forget_keys(tx: &mut Tx<'_>, now: Millis) -> Result<()> {
    const SQL: &str = "DELETE FROM message_keys WHERE created_at <= $1";
    tx.execute(SQL, params![now.minus(IDEMPOTENCY_KEY_TTL_MS)]).map(drop)
}
