//! Messages between members of teams. A message is addressed to a name. The transaction that ends the turn which showed
//! it marks it as read, or the one that stores the answer it asked for.

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

/// Stores a message. Returns `false` if it exists already.
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

/// Returns the message with the plan that a request asks to approve.
pub fn find_plan_request(tx: &mut Tx<'_>, team: &TeamId, request: &str) -> Result<Option<TeamMessage>> {
    const SQL: &str = select!(
        "WHERE team_id = $1 AND kind = 'plan_approval_request' AND request_id = $2 ORDER BY seq LIMIT 1"
    );
    tx.query_one(SQL, params![team, request], team_message_from_row)
}

/// Whether a message whose id has this prefix is unread.
pub fn has_unread_with_prefix(tx: &mut Tx<'_>, team: &TeamId, prefix: &str) -> Result<bool> {
    const SQL: &str = "SELECT 1 FROM team_messages WHERE team_id = $1 AND state IN ('queued', 'in_prompt')
        AND substr(message_id, 1, length($2)) = $2 LIMIT 1";
    Ok(tx.query_one(SQL, params![team, prefix], |_| Ok(()))?.is_some())
}

/// Lists the messages for a turn's prompt: those it shows already, then those that arrived since, in order.
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

/// Marks a message as shown in the turn's prompts.
pub fn mark_in_prompt(tx: &mut Tx<'_>, id: &TeamMessageId, turn: &TurnId, now: Millis) -> Result<()> {
    const SQL: &str = "UPDATE team_messages SET state = 'in_prompt', turn_id = $2, shown_at = $3
        WHERE message_id = $1 AND state = 'queued'";
    tx.execute(SQL, params![id, turn, now]).map(drop)
}

/// Lists the messages in a turn's prompts that were shown before a time.
pub fn list_in_prompt_before(tx: &mut Tx<'_>, turn: &TurnId, at: Millis) -> Result<Vec<TeamMessageId>> {
    const SQL: &str =
        "SELECT message_id FROM team_messages WHERE turn_id = $1 AND state = 'in_prompt' AND shown_at < $2";
    tx.query(SQL, params![turn, at], |row| row.text(0).map(TeamMessageId::new))
}

/// Lists the messages in a turn's prompts, in order.
pub fn list_in_prompt(tx: &mut Tx<'_>, turn: &TurnId) -> Result<Vec<TeamMessage>> {
    tx.query(
        select!("WHERE turn_id = $1 AND state = 'in_prompt' ORDER BY seq"),
        params![turn],
        team_message_from_row,
    )
}

/// Requeues a message that does not fit into the turn's prompts, for the next turn. A message to a member of an ended
/// team stays with its turn, because no later turn would show it.
pub fn requeue(tx: &mut Tx<'_>, id: &TeamMessageId, turn: &TurnId) -> Result<()> {
    const SQL: &str = "UPDATE team_messages SET state = 'queued', turn_id = NULL
        WHERE message_id = $1 AND turn_id = $2 AND state = 'in_prompt' AND (recipient = 'lead' OR NOT EXISTS
          (SELECT 1 FROM teams t WHERE t.team_id = team_messages.team_id AND t.status = 'shutdown'))";
    tx.execute(SQL, params![id, turn]).map(drop)
}

/// Settles the messages shown in an ended turn: read if `read_at` is given, otherwise queued again. Returns those that
/// nobody will read.
pub fn finish_by_turn(tx: &mut Tx<'_>, turn: &TurnId, read_at: Option<Millis>) -> Result<Vec<TeamMessage>> {
    const MARK_READ: &str =
        "UPDATE team_messages SET state = 'read', read_at = $2 WHERE turn_id = $1 AND state = 'in_prompt'";
    // If the team has ended meanwhile, nobody will see the message again.
    const REQUEUE_UNREAD: &str =
        "UPDATE team_messages SET turn_id = NULL, state = CASE WHEN recipient <> 'lead' AND EXISTS
          (SELECT 1 FROM teams t WHERE t.team_id = team_messages.team_id AND t.status = 'shutdown')
          THEN 'undeliverable' ELSE 'queued' END
        WHERE turn_id = $1 AND state = 'in_prompt'";
    if let Some(now) = read_at {
        return tx.execute(MARK_READ, params![turn, now]).map(|_| Vec::new());
    }
    let shown = list_in_prompt(tx, turn)?;
    // Locked, so that a team that is just ending either has ended before this or finds the messages queued.
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

/// Marks an answered request as read, even if the answering turn fails later.
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

/// Requeues messages shown in turns of a name's previous session, so that its new session sees them. Call it whenever a
/// name is given to another session, because turns of the previous one no longer mark messages as read.
pub(crate) fn requeue_by_recipient(tx: &mut Tx<'_>, team: &TeamId, name: &str) -> Result<()> {
    const SQL: &str =
        "UPDATE team_messages SET state = 'queued', turn_id = NULL WHERE team_id = $1 AND recipient = $2
        AND state IN ('queued', 'in_prompt') AND state = 'in_prompt'";
    tx.execute(SQL, params![team, name]).map(drop)
}

/// Counts the messages waiting for a name: real ones, and idle notices.
pub fn count_waiting(tx: &mut Tx<'_>, team: &TeamId, name: &str) -> Result<(usize, usize)> {
    const SQL: &str = "SELECT COUNT(*), COALESCE(CAST(SUM(CASE WHEN kind = 'idle' THEN 1 ELSE 0 END) AS BIGINT), 0)
        FROM team_messages WHERE team_id = $1 AND recipient = $2 AND state IN ('queued', 'in_prompt') AND state = 'queued'";
    let counts = tx.query_one(SQL, params![team, name], |row| Ok((row.count(0)?, row.count(1)?)))?;
    let (all, idle) = counts.unwrap_or_default();
    Ok((all - idle, idle))
}

/// Counts unread messages of a team by recipient.
pub fn count_unread(tx: &mut Tx<'_>, team: &TeamId) -> Result<Vec<(String, usize)>> {
    const SQL: &str = "SELECT recipient, COUNT(*) FROM team_messages
        WHERE team_id = $1 AND state IN ('queued', 'in_prompt') GROUP BY recipient";
    tx.query(SQL, params![team], |row| Ok((row.text(0)?, row.count(1)?)))
}

/// Marks queued messages of an ended team as undeliverable and returns them. Messages shown in a running turn are
/// settled when it ends.
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

/// Lists messages not copied to a file yet, in order.
pub fn list_uncopied(tx: &mut Tx<'_>, team: &TeamId, limit: usize) -> Result<Vec<TeamMessage>> {
    tx.query(
        select!("WHERE team_id = $1 AND is_copied = 0 ORDER BY seq LIMIT $2"),
        params![team, limit],
        team_message_from_row,
    )
}

/// Marks a message as copied to its file.
pub fn mark_copied(tx: &mut Tx<'_>, id: &TeamMessageId) -> Result<()> {
    tx.execute("UPDATE team_messages SET is_copied = 1 WHERE message_id = $1", params![id]).map(drop)
}

/// Lists messages of a team, newest first.
pub fn list_newest(tx: &mut Tx<'_>, team: &TeamId, limit: usize) -> Result<Vec<TeamMessage>> {
    tx.query(
        select!("WHERE team_id = $1 ORDER BY seq DESC LIMIT $2"),
        params![team, limit],
        team_message_from_row,
    )
}

/// Returns when the lead was last notified that a member is idle.
pub fn last_idle_at(tx: &mut Tx<'_>, team: &TeamId, sender: &str) -> Result<Option<Millis>> {
    const SQL: &str =
        "SELECT created_at FROM team_messages WHERE team_id = $1 AND sender = $2 AND kind = 'idle'
        ORDER BY seq DESC LIMIT 1";
    tx.query_one(SQL, params![team, sender], |row| row.time(0))
}

/// Lists recipients and summaries of a member's messages to other members since a time, for the lead.
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
