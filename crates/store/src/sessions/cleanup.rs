//! Unused sessions: idle for long, or exceeding the number kept for an agent.

use polyclaw_domain::id::AgentId;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::{Row, Tx};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedSession {
    pub key: SessionKey,
    pub agent: AgentId,
    pub updated_at: Millis,
    /// Rank among the sessions of its agent; the most recently used one has rank 1.
    pub rank: usize,
}

/// True if nothing is running, queued or being delivered, in the session or in its children.
macro_rules! at_rest {
    () => {
        "NOT EXISTS (SELECT 1 FROM jobs j WHERE j.session_key = s.session_key AND j.state IN ('queued', 'running'))
         AND NOT EXISTS (SELECT 1 FROM backlog b WHERE b.session_key = s.session_key AND b.drained_by_turn IS NULL)
         AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.session_key = s.session_key
           AND o.state IN ('pending', 'sending'))
         AND NOT EXISTS (SELECT 1 FROM sessions c JOIN jobs j ON j.session_key = c.session_key
           WHERE c.owner_session_key = s.session_key AND j.state IN ('queued', 'running'))"
    };
}

/// Lists idle sessions last used before `before`, or ranked after the `kept` most recent ones of their agent. Least
/// recently used first.
pub fn list_unused(tx: &mut Tx<'_>, before: Millis, kept: usize, limit: usize) -> Result<Vec<UnusedSession>> {
    const SQL: &str = concat!(
        "SELECT s.session_key, s.agent_id, s.updated_at, s.place FROM (SELECT session_key, agent_id, updated_at,
           ROW_NUMBER() OVER (PARTITION BY agent_id ORDER BY updated_at DESC, session_key DESC) AS place
           FROM sessions) s
         WHERE (s.updated_at < $1 OR s.place > $2) AND ",
        at_rest!(),
        " ORDER BY s.updated_at, s.session_key LIMIT $3"
    );
    tx.query(SQL, params![before, kept, limit], unused_session_from_row)
}

/// Deletes a session if it is still idle and unchanged since it was listed.
pub fn delete_unused(tx: &mut Tx<'_>, unused: &UnusedSession) -> Result<bool> {
    const LOCK_SESSION: &str = "SELECT updated_at FROM sessions WHERE session_key = $1 /* lock */";
    const FIND_IDLE: &str =
        concat!("SELECT s.session_key FROM sessions s WHERE s.session_key = $1 AND ", at_rest!());
    let as_it_was =
        tx.query_one(LOCK_SESSION, params![&unused.key], |row| row.time(0))? == Some(unused.updated_at);
    if !as_it_was || tx.query_one(FIND_IDLE, params![&unused.key], |row| row.text(0))?.is_none() {
        return Ok(false);
    }
    super::delete(tx, &unused.key)
}

fn unused_session_from_row(row: &Row<'_>) -> Result<UnusedSession> {
    Ok(UnusedSession {
        key: row.session_key(0)?,
        agent: row.agent_id(1)?,
        updated_at: row.time(2)?,
        rank: row.count(3)?,
    })
}
