//! What happened to messages: only added to. The database refuses everything else.

use polyclaw_domain::envelope::{EnvelopeEventKind, EnvelopeState};
use polyclaw_domain::id::{EnvelopeId, InstanceId};
use polyclaw_domain::time::Millis;

use super::Envelope;
use crate::error::Result;
use crate::params;
use crate::tx::{Row, Tx};

/// Which message an event is about. Of what it says nothing is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    pub seq: i64,
    pub id: EnvelopeId,
    pub from: InstanceId,
    pub to: InstanceId,
    /// Their names now; none of one that was deleted.
    pub from_name: Option<String>,
    pub to_name: Option<String>,
    pub kind: String,
    pub correlation: Option<String>,
}

impl From<&Envelope> for About {
    fn from(one: &Envelope) -> Self {
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
pub struct Event {
    pub about: About,
    pub kind: EnvelopeEventKind,
    /// The state it left the message in.
    pub state: EnvelopeState,
    pub detail: Option<String>,
    pub at: Millis,
}

/// Whose events somebody reads; all where nothing is said.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// As sender or as recipient.
    pub instance: Option<InstanceId>,
    pub correlation: Option<String>,
}

impl Reader {
    pub fn wants(&self, event: &Event) -> bool {
        let about = &event.about;
        let of_instance = self.instance.as_ref().is_none_or(|id| [&about.from, &about.to].contains(&id));
        let together = |id: &String| about.correlation.as_ref() == Some(id) || about.id.as_str() == id;
        of_instance && self.correlation.as_ref().is_none_or(together)
    }
}

pub(super) fn note(
    tx: &mut Tx<'_>,
    about: &About,
    (kind, state): (EnvelopeEventKind, EnvelopeState),
    detail: Option<&str>,
    now: Millis,
) -> Result<Event> {
    const SQL: &str =
        "INSERT INTO message_events (message, kind, state, detail, created_at) VALUES ($1, $2, $3, $4, $5)";
    tx.execute(SQL, params![about.seq, kind.as_str(), state.as_str(), detail, now])?;
    Ok(Event { about: about.clone(), kind, state, detail: detail.map(str::to_owned), at: now })
}

/// Everything that happened to one message, in order.
pub fn history(tx: &mut Tx<'_>, one: &Envelope) -> Result<Vec<Event>> {
    const SQL: &str =
        "SELECT kind, state, detail, created_at FROM message_events WHERE message = $1 ORDER BY seq";
    tx.query(SQL, params![one.seq], |row| {
        Ok(Event {
            about: About::from(one),
            kind: row.parsed(0, EnvelopeEventKind::parse)?,
            state: row.parsed(1, EnvelopeState::parse)?,
            detail: row.opt_text(2)?,
            at: row.time(3)?,
        })
    })
}

/// What happened last, in order.
pub fn recent(tx: &mut Tx<'_>, reader: &Reader, limit: usize) -> Result<Vec<Event>> {
    const SQL: &str =
        "SELECT e.kind, e.state, e.detail, e.created_at, m.seq, m.id, m.sender, m.recipient, m.type,
          m.correlation_id, (SELECT name FROM instances WHERE instances.id = m.sender),
          (SELECT name FROM instances WHERE instances.id = m.recipient)
        FROM message_events e JOIN messages m ON m.seq = e.message
        WHERE ($1 IS NULL OR m.sender = $1 OR m.recipient = $1)
          AND ($2 IS NULL OR m.correlation_id = $2 OR m.id = $2)
        ORDER BY e.seq DESC LIMIT $3";
    let params = params![reader.instance.as_ref(), reader.correlation.as_ref(), limit];
    let mut found = tx.query(SQL, params, read)?;
    found.reverse();
    Ok(found)
}

fn read(row: &Row<'_>) -> Result<Event> {
    let about = About {
        seq: row.int(4)?,
        id: EnvelopeId::new(row.text(5)?),
        from: InstanceId::new(row.text(6)?),
        to: InstanceId::new(row.text(7)?),
        from_name: row.opt_text(10)?,
        to_name: row.opt_text(11)?,
        kind: row.text(8)?,
        correlation: row.opt_text(9)?,
    };
    Ok(Event {
        about,
        kind: row.parsed(0, EnvelopeEventKind::parse)?,
        state: row.parsed(1, EnvelopeState::parse)?,
        detail: row.opt_text(2)?,
        at: row.time(3)?,
    })
}
