//! Events of messages. The table is append-only, which the database enforces.

use polyclaw_domain::envelope::{EnvelopeEventKind, EnvelopeState};
use polyclaw_domain::id::{EnvelopeId, InstanceId};
use polyclaw_domain::time::Millis;

use super::StoredEnvelope;
use crate::error::Result;
use crate::params;
use crate::tx::{Row, Tx};

/// The message an event is about, without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvelopeRef {
    pub seq: i64,
    pub id: EnvelopeId,
    pub from: InstanceId,
    pub to: InstanceId,
    /// Current names; `None` for a deleted instance.
    pub from_name: Option<String>,
    pub to_name: Option<String>,
    pub kind: String,
    pub correlation: Option<String>,
}

impl From<&StoredEnvelope> for EnvelopeRef {
    fn from(one: &StoredEnvelope) -> Self {
        Self {
            seq: one.seq,
            id: one.id.clone(),
            from: one.from.clone(),
            to: one.to.clone(),
            from_name: one.from_name.clone(),
            to_name: one.to_name.clone(),
            kind: one.kind.clone(),
            correlation: one.correlation.clone(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvelopeEvent {
    pub envelope: EnvelopeRef,
    pub kind: EnvelopeEventKind,
    /// The state of the message after the event.
    pub state: EnvelopeState,
    pub detail: Option<String>,
    pub at: Millis,
}

/// A filter for events. `None` matches everything.
#[derive(Clone, Debug, Default)]
pub struct EnvelopeEventFilter {
    /// As sender or recipient.
    pub instance: Option<InstanceId>,
    pub correlation: Option<String>,
}

impl EnvelopeEventFilter {
    pub fn matches_event(&self, event: &EnvelopeEvent) -> bool {
        let about = &event.envelope;
        let of_instance = self.instance.as_ref().is_none_or(|id| [&about.from, &about.to].contains(&id));
        let together = |id: &String| about.correlation.as_ref() == Some(id) || about.id.as_str() == id;
        of_instance && self.correlation.as_ref().is_none_or(together)
    }
}

pub(super) fn record_event(
    tx: &mut Tx<'_>,
    about: &EnvelopeRef,
    (kind, state): (EnvelopeEventKind, EnvelopeState),
    detail: Option<&str>,
    now: Millis,
) -> Result<EnvelopeEvent> {
    const SQL: &str =
        "INSERT INTO message_events (message, kind, state, detail, created_at) VALUES ($1, $2, $3, $4, $5)";
    tx.execute(SQL, params![about.seq, kind.as_str(), state.as_str(), detail, now])?;
    Ok(EnvelopeEvent { envelope: about.clone(), kind, state, detail: detail.map(str::to_owned), at: now })
}

/// Lists the events of one message, in order.
pub fn list_events(tx: &mut Tx<'_>, one: &StoredEnvelope) -> Result<Vec<EnvelopeEvent>> {
    const SQL: &str =
        "SELECT kind, state, detail, created_at FROM message_events WHERE message = $1 ORDER BY seq";
    tx.query(SQL, params![one.seq], |row| {
        Ok(EnvelopeEvent {
            envelope: EnvelopeRef::from(one),
            kind: row.parse_column(0, EnvelopeEventKind::parse)?,
            state: row.parse_column(1, EnvelopeState::parse)?,
            detail: row.opt_text(2)?,
            at: row.time(3)?,
        })
    })
}

/// Lists the newest events, in order.
pub fn list_recent_events(
    tx: &mut Tx<'_>,
    reader: &EnvelopeEventFilter,
    limit: usize,
) -> Result<Vec<EnvelopeEvent>> {
    const SQL: &str =
        "SELECT e.kind, e.state, e.detail, e.created_at, m.seq, m.id, m.sender, m.recipient, m.type,
          m.correlation_id, (SELECT name FROM instances WHERE instances.id = m.sender),
          (SELECT name FROM instances WHERE instances.id = m.recipient)
        FROM message_events e JOIN messages m ON m.seq = e.message
        WHERE ($1 IS NULL OR m.sender = $1 OR m.recipient = $1)
          AND ($2 IS NULL OR m.correlation_id = $2 OR m.id = $2)
        ORDER BY e.seq DESC LIMIT $3";
    let params = params![reader.instance.as_ref(), reader.correlation.as_ref(), limit];
    let mut found = tx.query(SQL, params, envelope_event_from_row)?;
    found.reverse();
    Ok(found)
}

fn envelope_event_from_row(row: &Row<'_>) -> Result<EnvelopeEvent> {
    let about = EnvelopeRef {
        seq: row.int(4)?,
        id: EnvelopeId::new(row.text(5)?),
        from: InstanceId::new(row.text(6)?),
        to: InstanceId::new(row.text(7)?),
        from_name: row.opt_text(10)?,
        to_name: row.opt_text(11)?,
        kind: row.text(8)?,
        correlation: row.opt_text(9)?,
    };
    Ok(EnvelopeEvent {
        envelope: about,
        kind: row.parse_column(0, EnvelopeEventKind::parse)?,
        state: row.parse_column(1, EnvelopeState::parse)?,
        detail: row.opt_text(2)?,
        at: row.time(3)?,
    })
}
