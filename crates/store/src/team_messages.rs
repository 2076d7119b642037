//! Letters between the members of teams. A letter is addressed to a name; `read` is set by the commit of the turn
//! whose prompt held it, or by that of the answer it asked for.

use std::collections::BTreeSet;

use polyclaw_domain::id::{TeamId, TeamMessageId, TurnId};
use polyclaw_domain::team_message::{TeamMessage, TeamMessageKind, TeamMessageState};
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::teams;
use crate::tx::{Row, Tx};

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT message_id, team_id, sender, recipient, kind, content, summary, request_id, approve, reason, state,
             turn_id, created_at, read_at FROM team_messages ",
            $rest
        )
    };
}

/// Stores a letter unless it is there; `false` if it was.
pub fn insert_once(tx: &mut Tx<'_>, message: &TeamMessage) -> Result<bool> {
    const SQL: &str =
        "INSERT INTO team_messages (message_id, team_id, sender, recipient, kind, content, summary,
          request_id, approve, reason, state, created_at, is_copied)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'queued', $11, 0)
        ON CONFLICT (message_id) DO NOTHING";
    let params = params![
        &message.id,
        &message.team,
        &message.from,
        &message.to,
        message.kind.as_str(),
        &message.content,
        &message.summary,
        message.request_id.as_ref(),
        message.approve,
        message.reason.as_ref(),
        message.created_at,
    ];
    Ok(tx.execute(SQL, params)? > 0)
}

pub fn get(tx: &mut Tx<'_>, id: &TeamMessageId) -> Result<Option<TeamMessage>> {
    tx.query_one(select!("WHERE message_id = $1"), params![id], team_message_from_row)
}

/// The plan that a request asks to approve.
pub fn find_plan_request(tx: &mut Tx<'_>, team: &TeamId, request: &str) -> Result<Option<TeamMessage>> {
    const SQL: &str = select!(
        "WHERE team_id = $1 AND kind = 'plan_approval_request' AND request_id = $2 ORDER BY seq LIMIT 1"
    );
    tx.query_one(SQL, params![team, request], team_message_from_row)
}

/// Whether a letter whose id begins so waits to be read.
pub fn has_unread_with_prefix(tx: &mut Tx<'_>, team: &TeamId, prefix: &str) -> Result<bool> {
    const SQL: &str = "SELECT 1 FROM team_messages WHERE team_id = $1 AND state IN ('queued', 'in_prompt')
        AND substr(message_id, 1, length($2)) = $2 LIMIT 1";
    Ok(tx.query_one(SQL, params![team, prefix], |_| Ok(()))?.is_some())
}

/// What a turn is to show: what it shows already, and what has come since, in order.
pub fn list_for_prompt(
    tx: &mut Tx<'_>,
    team: &TeamId,
    name: &str,
    turn: &TurnId,
    limit: usize,
) -> Result<Vec<TeamMessage>> {
    const SQL: &str = select!(
        "WHERE team_id = $1 AND recipient = $2 AND state IN ('queued', 'in_prompt')
           AND (state = 'queued' OR turn_id = $3) ORDER BY seq LIMIT $4"
    );
    tx.query(SQL, params![team, name, turn, limit], team_message_from_row)
}

/// From here on the turn's prompts hold it.
pub fn mark_in_prompt(tx: &mut Tx<'_>, id: &TeamMessageId, turn: &TurnId, now: Millis) -> Result<()> {
    const SQL: &str = "UPDATE team_messages SET state = 'in_prompt', turn_id = $2, shown_at = $3
        WHERE message_id = $1 AND state = 'queued'";
    tx.execute(SQL, params![id, turn, now]).map(drop)
}

/// What a turn shows, and showed already at a moment.
pub fn list_in_prompt_before(tx: &mut Tx<'_>, turn: &TurnId, at: Millis) -> Result<Vec<TeamMessageId>> {
    const SQL: &str =
        "SELECT message_id FROM team_messages WHERE turn_id = $1 AND state = 'in_prompt' AND shown_at < $2";
    tx.query(SQL, params![turn, at], |row| row.text(0).map(TeamMessageId::new))
}

/// What the prompts of a turn hold, in order.
pub fn list_in_prompt(tx: &mut Tx<'_>, turn: &TurnId) -> Result<Vec<TeamMessage>> {
    tx.query(
        select!("WHERE turn_id = $1 AND state = 'in_prompt' ORDER BY seq"),
        params![turn],
        team_message_from_row,
    )
}

/// The turn's prompts have no room for it: the next turn shows it. Nobody shows one of a team that has ended to a member,
/// so there it stays with its turn.
pub fn requeue(tx: &mut Tx<'_>, id: &TeamMessageId, turn: &TurnId) -> Result<()> {
    const SQL: &str = "UPDATE team_messages SET state = 'queued', turn_id = NULL
        WHERE message_id = $1 AND turn_id = $2 AND state = 'in_prompt' AND (recipient = 'lead' OR NOT EXISTS
          (SELECT 1 FROM teams t WHERE t.team_id = team_messages.team_id AND t.status = 'shutdown'))";
    tx.execute(SQL, params![id, turn]).map(drop)
}

/// The turn has ended: with `read_at`, what it showed is read; without, it is shown again. Returns what nobody will read.
pub fn finish_by_turn(tx: &mut Tx<'_>, turn: &TurnId, read_at: Option<Millis>) -> Result<Vec<TeamMessage>> {
    const MARK_READ: &str =
        "UPDATE team_messages SET state = 'read', read_at = $2 WHERE turn_id = $1 AND state = 'in_prompt'";
    // Nobody will be shown it again where the team has ended meanwhile.
    const REQUEUE_UNREAD: &str =
        "UPDATE team_messages SET turn_id = NULL, state = CASE WHEN recipient <> 'lead' AND EXISTS
          (SELECT 1 FROM teams t WHERE t.team_id = team_messages.team_id AND t.status = 'shutdown')
          THEN 'undeliverable' ELSE 'queued' END
        WHERE turn_id = $1 AND state = 'in_prompt'";
    if let Some(now) = read_at {
        return tx.execute(MARK_READ, params![turn, now]).map(|_| Vec::new());
    }
    let shown = list_in_prompt(tx, turn)?;
    // A team that ends in this moment has ended when they are looked at, or finds them queued.
    for team in shown.iter().map(|message| &message.team).collect::<BTreeSet<_>>() {
        teams::lock_team(tx, team)?;
    }
    tx.execute(REQUEUE_UNREAD, params![turn])?;
    let mut lost = Vec::new();
    for message in shown {
        lost.extend(get(tx, &message.id)?.filter(|message| message.state == TeamMessageState::Undeliverable));
    }
    Ok(lost)
}

/// A request was answered, so it was read, whatever becomes of the turn that answered.
pub fn mark_request_read(
    tx: &mut Tx<'_>,
    team: &TeamId,
    (name, request): (&str, &str),
    now: Millis,
) -> Result<()> {
    const SQL: &str =
        "UPDATE team_messages SET state = 'read', read_at = $4 WHERE team_id = $1 AND recipient = $2
        AND state IN ('queued', 'in_prompt') AND kind = 'shutdown_request' AND request_id = $3";
    tx.execute(SQL, params![team, name, request, now]).map(drop)
}

/// The name is another's from here on: what prompts of its earlier life held is shown to that one. Whoever gives a
/// name away calls this with it, for the earlier life's turns are not asked any more what they have read.
pub(crate) fn requeue_by_recipient(tx: &mut Tx<'_>, team: &TeamId, name: &str) -> Result<()> {
    const SQL: &str =
        "UPDATE team_messages SET state = 'queued', turn_id = NULL WHERE team_id = $1 AND recipient = $2
        AND state IN ('queued', 'in_prompt') AND state = 'in_prompt'";
    tx.execute(SQL, params![team, name]).map(drop)
}

/// What waits for a name: letters, and mere notices that somebody is idle.
pub fn count_waiting(tx: &mut Tx<'_>, team: &TeamId, name: &str) -> Result<(usize, usize)> {
    const SQL: &str = "SELECT COUNT(*), COALESCE(CAST(SUM(CASE WHEN kind = 'idle' THEN 1 ELSE 0 END) AS BIGINT), 0)
        FROM team_messages WHERE team_id = $1 AND recipient = $2 AND state IN ('queued', 'in_prompt') AND state = 'queued'";
    let counts = tx.query_one(SQL, params![team, name], |row| Ok((row.count(0)?, row.count(1)?)))?;
    let (all, idle) = counts.unwrap_or_default();
    Ok((all - idle, idle))
}

/// How many letters of a team nobody has read yet, by whom they are for.
pub fn count_unread(tx: &mut Tx<'_>, team: &TeamId) -> Result<Vec<(String, usize)>> {
    const SQL: &str = "SELECT recipient, COUNT(*) FROM team_messages
        WHERE team_id = $1 AND state IN ('queued', 'in_prompt') GROUP BY recipient";
    tx.query(SQL, params![team], |row| Ok((row.text(0)?, row.count(1)?)))
}

/// What nobody will ever read is said to be so, and returned; what a turn shows right now is settled by its end.
pub fn mark_undeliverable(tx: &mut Tx<'_>, team: &TeamId) -> Result<Vec<TeamMessage>> {
    const FIND_QUEUED: &str = select!(
        "WHERE team_id = $1 AND recipient <> 'lead' AND state IN ('queued', 'in_prompt') AND state = 'queued'
         ORDER BY seq"
    );
    const SQL: &str =
        "UPDATE team_messages SET state = 'undeliverable' WHERE team_id = $1 AND recipient <> 'lead'
        AND state IN ('queued', 'in_prompt') AND state = 'queued'";
    let left = tx.query(FIND_QUEUED, params![team], team_message_from_row)?;
    tx.execute(SQL, params![team])?;
    Ok(left)
}

/// Letters of a team that are in no file yet, in order.
pub fn list_uncopied(tx: &mut Tx<'_>, team: &TeamId, limit: usize) -> Result<Vec<TeamMessage>> {
    tx.query(
        select!("WHERE team_id = $1 AND is_copied = 0 ORDER BY seq LIMIT $2"),
        params![team, limit],
        team_message_from_row,
    )
}

/// It is in its file.
pub fn mark_copied(tx: &mut Tx<'_>, id: &TeamMessageId) -> Result<()> {
    tx.execute("UPDATE team_messages SET is_copied = 1 WHERE message_id = $1", params![id]).map(drop)
}

/// Letters of a team, the newest first.
pub fn list_newest(tx: &mut Tx<'_>, team: &TeamId, limit: usize) -> Result<Vec<TeamMessage>> {
    tx.query(
        select!("WHERE team_id = $1 ORDER BY seq DESC LIMIT $2"),
        params![team, limit],
        team_message_from_row,
    )
}

/// When the lead was last told that somebody is idle.
pub fn last_idle_at(tx: &mut Tx<'_>, team: &TeamId, sender: &str) -> Result<Option<Millis>> {
    const SQL: &str =
        "SELECT created_at FROM team_messages WHERE team_id = $1 AND sender = $2 AND kind = 'idle'
        ORDER BY seq DESC LIMIT 1";
    tx.query_one(SQL, params![team, sender], |row| row.time(0))
}

/// What members wrote to each other since a moment, for the lead: it sees summaries.
pub fn list_peer_summaries(
    tx: &mut Tx<'_>,
    team: &TeamId,
    sender: &str,
    since: Millis,
    limit: usize,
) -> Result<Vec<(String, String)>> {
    const SQL: &str = "SELECT recipient, summary FROM team_messages
        WHERE team_id = $1 AND sender = $2 AND recipient <> 'lead' AND kind = 'message' AND created_at >= $3
        ORDER BY seq LIMIT $4";
    tx.query(SQL, params![team, sender, since, limit], |row| Ok((row.text(0)?, row.text(1)?)))
}

fn team_message_from_row(row: &Row<'_>) -> Result<TeamMessage> {
    Ok(TeamMessage {
        id: TeamMessageId::new(row.text(0)?),
        team: TeamId::new(row.text(1)?),
        from: row.text(2)?,
        to: row.text(3)?,
        kind: row.parse_column(4, TeamMessageKind::parse)?,
        content: row.text(5)?,
        summary: row.text(6)?,
        request_id: row.opt_text(7)?,
        approve: row.opt_int(8)?.map(|n| n != 0),
        reason: row.opt_text(9)?,
        state: row.parse_column(10, TeamMessageState::parse)?,
        turn: row.opt_text(11)?.map(TurnId::new),
        created_at: row.time(12)?,
        read_at: row.opt_time(13)?,
    })
}
