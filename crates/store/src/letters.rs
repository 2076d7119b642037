//! Letters between the members of teams. A letter is addressed to a name; `read` is set by the commit of the turn
//! whose prompt held it, and by nothing else.

use polyclaw_domain::id::{LetterId, TeamId, TurnId};
use polyclaw_domain::mail::{Letter, LetterKind, LetterState};
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::{Row, Tx};

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT letter_id, team_id, sender, recipient, kind, content, summary, request_id, approve, reason, state,
             turn_id, created_at, read_at FROM letters ",
            $rest
        )
    };
}

/// Stores a letter unless it is there; `false` if it was.
pub fn push(tx: &mut Tx<'_>, letter: &Letter) -> Result<bool> {
    const SQL: &str = "INSERT INTO letters (letter_id, team_id, sender, recipient, kind, content, summary,
          request_id, approve, reason, state, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'queued', $11)
        ON CONFLICT (letter_id) DO NOTHING";
    let params = params![
        &letter.id,
        &letter.team,
        &letter.from,
        &letter.to,
        letter.kind.as_str(),
        &letter.content,
        &letter.summary,
        letter.request_id.as_ref(),
        letter.approve,
        letter.reason.as_ref(),
        letter.created_at,
    ];
    Ok(tx.execute(SQL, params)? > 0)
}

pub fn get(tx: &mut Tx<'_>, id: &LetterId) -> Result<Option<Letter>> {
    tx.query_one(select!("WHERE letter_id = $1"), params![id], read)
}

/// What a turn is to show: what it shows already, and what has come since, in order.
pub fn due(tx: &mut Tx<'_>, team: &TeamId, name: &str, turn: &TurnId, limit: usize) -> Result<Vec<Letter>> {
    const SQL: &str = select!(
        "WHERE team_id = $1 AND recipient = $2 AND state IN ('queued', 'in_prompt')
           AND (state = 'queued' OR turn_id = $3) ORDER BY seq LIMIT $4"
    );
    tx.query(SQL, params![team, name, turn, limit], read)
}

/// From here on the turn's prompts hold it.
pub fn show(tx: &mut Tx<'_>, id: &LetterId, turn: &TurnId) -> Result<()> {
    const SQL: &str =
        "UPDATE letters SET state = 'in_prompt', turn_id = $2 WHERE letter_id = $1 AND state = 'queued'";
    tx.execute(SQL, params![id, turn]).map(drop)
}

/// The turn has ended: with `read_at`, what it showed is read; without, it is shown again.
pub fn close(tx: &mut Tx<'_>, turn: &TurnId, read_at: Option<Millis>) -> Result<usize> {
    const READ: &str =
        "UPDATE letters SET state = 'read', read_at = $2 WHERE turn_id = $1 AND state = 'in_prompt'";
    const AGAIN: &str = "UPDATE letters SET state = 'queued', turn_id = NULL
        WHERE turn_id = $1 AND state = 'in_prompt'";
    match read_at {
        Some(now) => tx.execute(READ, params![turn, now]),
        None => tx.execute(AGAIN, params![turn]),
    }
}

/// What waits for a name: letters, and mere notices that somebody is idle.
pub fn waiting(tx: &mut Tx<'_>, team: &TeamId, name: &str) -> Result<(usize, usize)> {
    const SQL: &str = "SELECT COUNT(*), COALESCE(CAST(SUM(CASE WHEN kind = 'idle' THEN 1 ELSE 0 END) AS BIGINT), 0)
        FROM letters WHERE team_id = $1 AND recipient = $2 AND state IN ('queued', 'in_prompt') AND state = 'queued'";
    let counts = tx.query_one(SQL, params![team, name], |row| Ok((row.count(0)?, row.count(1)?)))?;
    let (all, idle) = counts.unwrap_or_default();
    Ok((all - idle, idle))
}

/// What nobody will ever read is said to be so. Returns how many.
pub fn give_up(tx: &mut Tx<'_>, team: &TeamId) -> Result<usize> {
    const SQL: &str = "UPDATE letters SET state = 'undeliverable' WHERE team_id = $1 AND recipient <> 'lead'
        AND state IN ('queued', 'in_prompt')";
    tx.execute(SQL, params![team])
}

/// Letters of a team, the newest first.
pub fn newest(tx: &mut Tx<'_>, team: &TeamId, limit: usize) -> Result<Vec<Letter>> {
    tx.query(select!("WHERE team_id = $1 ORDER BY seq DESC LIMIT $2"), params![team, limit], read)
}

/// What members wrote to each other since a moment, for the lead: it sees summaries.
pub fn between(
    tx: &mut Tx<'_>,
    team: &TeamId,
    sender: &str,
    since: Millis,
    limit: usize,
) -> Result<Vec<(String, String)>> {
    const SQL: &str = "SELECT recipient, summary FROM letters
        WHERE team_id = $1 AND sender = $2 AND recipient <> 'lead' AND kind = 'message' AND created_at >= $3
        ORDER BY seq LIMIT $4";
    tx.query(SQL, params![team, sender, since, limit], |row| Ok((row.text(0)?, row.text(1)?)))
}

fn read(row: &Row<'_>) -> Result<Letter> {
    Ok(Letter {
        id: LetterId::new(row.text(0)?),
        team: TeamId::new(row.text(1)?),
        from: row.text(2)?,
        to: row.text(3)?,
        kind: row.parsed(4, LetterKind::parse)?,
        content: row.text(5)?,
        summary: row.text(6)?,
        request_id: row.opt_text(7)?,
        approve: row.opt_int(8)?.map(|n| n != 0),
        reason: row.opt_text(9)?,
        state: row.parsed(10, LetterState::parse)?,
        turn: row.opt_text(11)?.map(TurnId::new),
        created_at: row.time(12)?,
        read_at: row.opt_time(13)?,
    })
}
