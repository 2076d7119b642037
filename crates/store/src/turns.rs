//! Pages of turns for people, newest first. The queue itself is in `jobs`.

use polyclaw_domain::id::TurnId;
use polyclaw_domain::job::JobState;
use polyclaw_domain::session_key::SessionKey;

use crate::error::Result;
use crate::jobs::{self, TurnJob};
use crate::params;
use crate::tx::{Row, Tx};

#[derive(Clone, Debug, Default)]
pub struct TurnListFilter {
    pub session: Option<SessionKey>,
    pub state: Option<JobState>,
    /// Only turns queued before the one with this number.
    pub before: Option<i64>,
    pub limit: usize,
}

/// Lists turns, each with its number in the queue.
pub fn list(tx: &mut Tx<'_>, filter: &TurnListFilter) -> Result<Vec<(i64, TurnJob)>> {
    const ALL: &str = "SELECT seq, turn_id FROM jobs
        WHERE seq < $1 AND (CAST($2 AS TEXT) IS NULL OR state = $2) ORDER BY seq DESC LIMIT $3";
    const OF_SESSION: &str = "SELECT seq, turn_id FROM jobs
        WHERE session_key = $4 AND seq < $1 AND (CAST($2 AS TEXT) IS NULL OR state = $2)
        ORDER BY seq DESC LIMIT $3";
    let (before, state) = (filter.before.unwrap_or(i64::MAX), filter.state.map(JobState::as_str));
    let place = |row: &Row<'_>| Ok((row.int(0)?, TurnId::new(row.text(1)?)));
    let places = match &filter.session {
        Some(session) => tx.query(OF_SESSION, params![before, state, filter.limit, session], place)?,
        None => tx.query(ALL, params![before, state, filter.limit], place)?,
    };
    let mut turns = Vec::with_capacity(places.len());
    for (seq, turn) in places {
        turns.extend(jobs::get(tx, &turn)?.map(|job| (seq, job)));
    }
    Ok(turns)
}
