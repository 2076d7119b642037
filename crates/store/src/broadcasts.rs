//! Broadcasts: one message that several agents answer. The targets hold the agents, their order and the turn of each.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::{AgentId, TurnId};
use polyclaw_domain::job::JobPriority;
use polyclaw_domain::message::{MessagePart, attached_images};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use serde_json::Value;

use crate::error::Result;
use crate::messages::{from_json, to_json};
use crate::tx::{Row, Tx};
use crate::{media, params};

#[derive(Clone, Debug, PartialEq)]
pub struct Broadcast {
    pub id: String,
    pub text: String,
    pub parts: Vec<MessagePart>,
    pub address: ChatAddress,
    pub meta: Option<Value>,
    pub priority: JobPriority,
    /// The agents answer one after the other instead of concurrently.
    pub is_sequential: bool,
    /// Each agent is shown the replies of those before it.
    pub see_previous: bool,
    pub targets: Vec<BroadcastTarget>,
    pub created_at: Millis,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BroadcastTarget {
    pub agent: AgentId,
    pub session: SessionKey,
    /// The result in this session; `None` while it is pending.
    pub outcome: Option<TargetOutcome>,
}

/// What a broadcast message became in one of its sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetOutcome {
    Turn(TurnId),
    /// The session rejected it, and the sender was notified.
    Refused,
}

/// Turn ids are never empty, so an empty one marks a rejection.
const REFUSED_TURN_ID: &str = "";

pub fn insert(tx: &mut Tx<'_>, round: &Broadcast) -> Result<()> {
    const INSERT_BROADCAST: &str =
        "INSERT INTO broadcasts (broadcast_id, text, parts_json, address_json, meta_json, priority, is_sequential,
          see_previous, is_open, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1, $9)";
    const INSERT_TARGET: &str = "INSERT INTO broadcast_targets (broadcast_id, position, agent_id, session_key) VALUES ($1, $2, $3, $4)";
    let (parts, address) = (to_json(&round.parts)?, to_json(&round.address)?);
    let meta = round.meta.as_ref().map(to_json).transpose()?;
    let (priority, created_at) = (round.priority as i64, round.created_at);
    tx.execute(
        INSERT_BROADCAST,
        params![
            &round.id,
            &round.text,
            &parts,
            &address,
            meta.as_ref(),
            priority,
            round.is_sequential,
            round.see_previous,
            created_at
        ],
    )?;
    for (at, target) in round.targets.iter().enumerate() {
        tx.execute(INSERT_TARGET, params![&round.id, at, &target.agent, &target.session])?;
    }
    attached_images(&round.parts)
        .try_for_each(|image| media::attach_to_broadcast(tx, &round.id, image, created_at))
}

pub fn get(tx: &mut Tx<'_>, id: &str) -> Result<Option<Broadcast>> {
    const SQL: &str =
        "SELECT broadcast_id, text, parts_json, address_json, meta_json, priority, is_sequential, see_previous,
          created_at FROM broadcasts WHERE broadcast_id = $1";
    const FIND_TARGETS: &str = "SELECT agent_id, session_key, turn_id FROM broadcast_targets WHERE broadcast_id = $1 ORDER BY position";
    let Some(round) = tx.query_one(SQL, params![id], broadcast_from_row)? else { return Ok(None) };
    let targets = tx.query(FIND_TARGETS, params![id], |row| {
        let turn = row.opt_text(2)?.map(|turn| match turn.as_str() {
            REFUSED_TURN_ID => TargetOutcome::Refused,
            _ => TargetOutcome::Turn(TurnId::new(turn)),
        });
        Ok(BroadcastTarget { agent: row.agent_id(0)?, session: row.session_key(1)?, outcome: turn })
    })?;
    Ok(Some(Broadcast { targets, ..round }))
}

/// Lists broadcasts with pending targets, oldest first.
pub fn list_open(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    tx.query("SELECT broadcast_id FROM broadcasts WHERE is_open = 1 ORDER BY broadcast_id", &[], |row| {
        row.text(0)
    })
}

/// Records the result of one target. The first write wins, so nodes that write concurrently agree.
pub fn record_target_outcome(
    tx: &mut Tx<'_>,
    round: &str,
    position: usize,
    taken: &TargetOutcome,
) -> Result<()> {
    const SQL: &str = "UPDATE broadcast_targets SET turn_id = $3 WHERE broadcast_id = $1 AND position = $2 AND turn_id IS NULL";
    let turn = match taken {
        TargetOutcome::Turn(turn) => turn.as_str(),
        TargetOutcome::Refused => REFUSED_TURN_ID,
    };
    tx.execute(SQL, params![round, position, turn]).map(drop)
}

pub fn close(tx: &mut Tx<'_>, round: &str) -> Result<()> {
    tx.execute("UPDATE broadcasts SET is_open = 0 WHERE broadcast_id = $1", params![round])?;
    media::detach_from_broadcast(tx, round)
}

/// Deletes closed broadcasts created before `before`.
pub fn delete_closed_before(tx: &mut Tx<'_>, before: Millis) -> Result<usize> {
    tx.execute("DELETE FROM broadcasts WHERE is_open = 0 AND created_at < $1", params![before])
}

fn broadcast_from_row(row: &Row<'_>) -> Result<Broadcast> {
    Ok(Broadcast {
        id: row.text(0)?,
        text: row.text(1)?,
        parts: row.opt_text(2)?.map(|json| from_json(&json)).transpose()?.unwrap_or_default(),
        address: from_json(&row.text(3)?)?,
        meta: row.opt_text(4)?.map(|json| from_json(&json)).transpose()?,
        priority: JobPriority::ALL.get(row.count(5)?).copied().unwrap_or(JobPriority::Background),
        is_sequential: row.flag(6)?,
        see_previous: row.flag(7)?,
        targets: Vec::new(),
        created_at: row.time(8)?,
    })
}
