//! Activity counters with which the team reconciler finds the teams that need it, in one statement for all.

use polyclaw_domain::id::TeamId;
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::tx::{Row, Tx};

/// Counters that change whenever something happens to a team in the main database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamActivity {
    pub team: TeamId,
    /// Members with a running or ready turn, or with running children.
    pub at_work: i64,
    /// Shutdown requests.
    pub requests: i64,
    other_counts: Vec<i64>,
}

/// Returns the activity of every open team.
pub fn list_activity(tx: &mut Tx<'_>) -> Result<Vec<TeamActivity>> {
    const SQL: &str = "SELECT t.team_id,
          (SELECT COUNT(*) FROM members m WHERE m.team_id = t.team_id AND m.state = 'active' AND (EXISTS
             (SELECT 1 FROM jobs j WHERE j.session_key = m.session_key AND j.state IN ('queued', 'running')
              AND j.held <> 2)
             OR EXISTS (SELECT 1 FROM runs r WHERE r.owner_key = m.session_key AND r.status = 'running'))),
          (SELECT COUNT(*) FROM shutdown_requests q WHERE q.team_id = t.team_id),
          t.updated_at,
          (SELECT COALESCE(MAX(l.seq), 0) FROM team_messages l WHERE l.team_id = t.team_id),
          (SELECT COUNT(*) FROM team_messages l WHERE l.team_id = t.team_id AND l.is_copied = 0),
          (SELECT COUNT(*) FROM members m WHERE m.team_id = t.team_id AND m.ended_turn IS NOT NULL),
          (SELECT COALESCE(MAX(m.last_active_at), 0) + COUNT(*) FROM members m WHERE m.team_id = t.team_id),
          (SELECT COUNT(*) FROM members m JOIN jobs j ON j.session_key = m.session_key
             WHERE m.team_id = t.team_id AND j.state = 'queued' AND j.held = 2),
          (SELECT COUNT(*) FROM members m WHERE m.team_id = t.team_id AND m.state = 'active'
             AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.session_key = m.session_key)),
          (SELECT COALESCE(MAX(j.seq), 0) FROM jobs j WHERE j.session_key = t.lead_key)
        FROM teams t WHERE t.status <> 'shutdown'";
    tx.query(SQL, &[], |row: &Row<'_>| {
        Ok(TeamActivity {
            team: TeamId::new(row.text(0)?),
            at_work: row.int(1)?,
            requests: row.int(2)?,
            other_counts: (3..=10).map(|at| row.int(at)).collect::<Result<_>>()?,
        })
    })
}

/// Lists teams with a ledger in this database that have events to relay or held tasks, with the end of the first lease.
pub fn list_ledger_activity(tx: &mut Tx<'_>) -> Result<Vec<(TeamId, Option<Millis>)>> {
    const SQL: &str = "SELECT DISTINCT team_id, CAST(NULL AS BIGINT) FROM task_events WHERE is_relayed = 0
        UNION ALL SELECT team_id, MIN(lease_until) FROM tasks WHERE owner IS NOT NULL GROUP BY team_id";
    tx.query(SQL, &[], |row| Ok((TeamId::new(row.text(0)?), row.opt_time(1)?)))
}
