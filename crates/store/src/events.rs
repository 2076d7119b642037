//! Events: a record of what happened, for people and tools.

use polyclaw_domain::event::NewEvent;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use serde_json::Value;

use crate::error::Result;
use crate::messages::{from_json, to_json};
use crate::params;
use crate::tx::{Row, Tx};

pub fn record(tx: &mut Tx<'_>, event: &NewEvent, now: Millis) -> Result<()> {
    const SQL: &str =
        "INSERT INTO events (kind, session_key, turn_id, agent_id, trace_id, data_json, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let data = to_json(&event.data)?;
    let params = params![
        event.kind.as_str(),
        event.session.as_ref(),
        event.turn.as_ref(),
        event.agent.as_ref(),
        event.trace.as_ref(),
        &data,
        now
    ];
    tx.execute(SQL, params).map(drop)
}

#[derive(Clone, Debug)]
pub struct EventRecord {
    pub seq: i64,
    pub kind: String,
    pub session: Option<String>,
    pub turn: Option<String>,
    pub agent: Option<String>,
    pub trace: Option<String>,
    pub data: Value,
    pub created_at: Millis,
}

pub fn list(
    tx: &mut Tx<'_>,
    after: i64,
    kind: Option<&str>,
    session: Option<&SessionKey>,
    limit: usize,
) -> Result<Vec<EventRecord>> {
    macro_rules! select {
        ($which:literal) => {
            concat!(
                "SELECT seq, kind, session_key, turn_id, agent_id, trace_id, data_json, created_at FROM events
                 WHERE ",
                $which,
                "seq > $1 AND (CAST($2 AS TEXT) IS NULL OR kind = $2) ORDER BY seq LIMIT $3"
            )
        };
    }
    match session {
        Some(session) => {
            tx.query(select!("session_key = $4 AND "), params![after, kind, limit, session], event_from_row)
        }
        None => tx.query(select!(""), params![after, kind, limit], event_from_row),
    }
}

/// Returns the newest events, in order.
pub fn list_latest(tx: &mut Tx<'_>, limit: usize) -> Result<Vec<EventRecord>> {
    const SQL: &str =
        "SELECT seq, kind, session_key, turn_id, agent_id, trace_id, data_json, created_at FROM events
        ORDER BY seq DESC LIMIT $1";
    let mut found = tx.query(SQL, params![limit], event_from_row)?;
    found.reverse();
    Ok(found)
}

fn event_from_row(row: &Row<'_>) -> Result<EventRecord> {
    Ok(EventRecord {
        seq: row.int(0)?,
        kind: row.text(1)?,
        session: row.opt_text(2)?,
        turn: row.opt_text(3)?,
        agent: row.opt_text(4)?,
        trace: row.opt_text(5)?,
        data: from_json(&row.text(6)?)?,
        created_at: row.time(7)?,
    })
}
