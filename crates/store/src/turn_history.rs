//! Past turns for operators: request, session and result.

use polyclaw_domain::job::JobState;
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::{Row, Tx};

/// Length of an excerpt.
const MAX_EXCERPT_CHARS: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastTurn {
    pub turn: String,
    pub session: String,
    pub agent: String,
    pub channel: Option<String>,
    pub state: JobState,
    pub model: Option<String>,
    pub trace: String,
    /// Beginning of the message that the turn answers.
    pub request_excerpt: Option<String>,
    /// Beginning of the reply.
    pub reply_excerpt: Option<String>,
    pub error_code: Option<String>,
    pub error: Option<String>,
    pub queued_at: Millis,
    pub started_at: Option<Millis>,
    pub ended_at: Option<Millis>,
}

#[derive(Clone, Debug, Default)]
pub struct PastTurnFilter {
    pub state: Option<JobState>,
    pub channel: Option<String>,
    pub after: Option<Millis>,
    pub before: Option<Millis>,
    /// Paging cursor: turns after this one, by queue time and id.
    pub behind: Option<(Millis, String)>,
    pub limit: usize,
}

/// Lists turns, newest first; those queued at the same time by id.
pub fn list_past_turns(tx: &mut Tx<'_>, filter: &PastTurnFilter) -> Result<Vec<PastTurn>> {
    const SQL: &str = "SELECT j.turn_id, j.session_key, j.agent_id, s.channel, j.state, j.model, j.trace_id,
          (SELECT m.text FROM messages m WHERE m.turn_id = j.turn_id AND m.role = 'user' ORDER BY m.position LIMIT 1),
          (SELECT r.text FROM messages r WHERE r.id = j.reply_id),
          j.error_code, j.error, j.queued_at, j.started_at, j.ended_at
        FROM jobs j JOIN sessions s ON s.session_key = j.session_key
        WHERE j.kind = 'turn' AND (CAST($1 AS TEXT) IS NULL OR j.state = $1)
          AND (CAST($2 AS TEXT) IS NULL OR s.channel = $2)
          AND j.queued_at >= $3 AND j.queued_at < $4
          AND (j.queued_at < $5 OR (j.queued_at = $5 AND j.turn_id < $6))
        ORDER BY j.queued_at DESC, j.turn_id DESC LIMIT $7";
    let (at, id) = filter.behind.clone().unwrap_or((Millis(i64::MAX), String::new()));
    let params = params![
        filter.state.map(JobState::as_str),
        filter.channel.as_ref(),
        filter.after.unwrap_or(Millis(i64::MIN)),
        filter.before.unwrap_or(Millis(i64::MAX)),
        at,
        &id,
        filter.limit
    ];
    tx.query(SQL, params, past_turn_from_row)
}

fn past_turn_from_row(row: &Row<'_>) -> Result<PastTurn> {
    let beginning = |at| -> Result<Option<String>> {
        Ok(row.opt_text(at)?.map(|text| text.chars().take(MAX_EXCERPT_CHARS).collect()))
    };
    Ok(PastTurn {
        turn: row.text(0)?,
        session: row.text(1)?,
        agent: row.text(2)?,
        channel: row.opt_text(3)?,
        state: row.parse_column(4, JobState::parse)?,
        model: row.opt_text(5)?,
        trace: row.text(6)?,
        request_excerpt: beginning(7)?,
        reply_excerpt: beginning(8)?,
        error_code: row.opt_text(9)?,
        error: row.opt_text(10)?,
        queued_at: row.time(11)?,
        started_at: row.opt_time(12)?,
        ended_at: row.opt_time(13)?,
    })
}
