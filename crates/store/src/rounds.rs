//! Rounds: one message that several agents answer. Its seats say which agents, in which order, and the turn each became.

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
pub struct Round {
    pub id: String,
    pub text: String,
    pub parts: Vec<MessagePart>,
    pub address: ChatAddress,
    pub meta: Option<Value>,
    pub priority: JobPriority,
    /// One agent after the other, not all at once.
    pub in_turn: bool,
    /// Each is shown what those before it said.
    pub see_previous: bool,
    pub seats: Vec<Seat>,
    pub created_at: Millis,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Seat {
    pub agent: AgentId,
    pub session: SessionKey,
    /// What the message became there; `None` until it is there.
    pub turn: Option<Taken>,
}

/// What a message became in one of the sessions of its round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    Turn(TurnId),
    /// The session did not take it; whoever wrote was told.
    Refused,
}

/// Turns have ids, so an empty one stands for none.
const REFUSED: &str = "";

pub fn insert(tx: &mut Tx<'_>, round: &Round) -> Result<()> {
    const ROUND: &str =
        "INSERT INTO rounds (round_id, text, parts_json, address_json, meta_json, priority, in_turn,
          see_previous, is_open, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1, $9)";
    const SEAT: &str = "INSERT INTO seats (round_id, seat, agent_id, session_key) VALUES ($1, $2, $3, $4)";
    let (parts, address) = (to_json(&round.parts)?, to_json(&round.address)?);
    let meta = round.meta.as_ref().map(to_json).transpose()?;
    let (priority, created_at) = (round.priority as i64, round.created_at);
    tx.execute(
        ROUND,
        params![
            &round.id,
            &round.text,
            &parts,
            &address,
            meta.as_ref(),
            priority,
            round.in_turn,
            round.see_previous,
            created_at
        ],
    )?;
    for (at, seat) in round.seats.iter().enumerate() {
        tx.execute(SEAT, params![&round.id, at, &seat.agent, &seat.session])?;
    }
    attached_images(&round.parts).try_for_each(|image| media::hold(tx, &round.id, image, created_at))
}

pub fn get(tx: &mut Tx<'_>, id: &str) -> Result<Option<Round>> {
    const SQL: &str =
        "SELECT round_id, text, parts_json, address_json, meta_json, priority, in_turn, see_previous,
          created_at FROM rounds WHERE round_id = $1";
    const SEATS: &str = "SELECT agent_id, session_key, turn_id FROM seats WHERE round_id = $1 ORDER BY seat";
    let Some(round) = tx.query_one(SQL, params![id], read)? else { return Ok(None) };
    let seats = tx.query(SEATS, params![id], |row| {
        let turn = row.opt_text(2)?.map(|turn| match turn.as_str() {
            REFUSED => Taken::Refused,
            _ => Taken::Turn(TurnId::new(turn)),
        });
        Ok(Seat { agent: row.agent(0)?, session: row.key(1)?, turn })
    })?;
    Ok(Some(Round { seats, ..round }))
}

/// Rounds in which not every agent has had its turn, oldest first.
pub fn open(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    tx.query("SELECT round_id FROM rounds WHERE is_open = 1 ORDER BY round_id", &[], |row| row.text(0))
}

/// Notes what the message became at one seat. The first word stands: two nodes that look at once say the same.
pub fn take_seat(tx: &mut Tx<'_>, round: &str, seat: usize, taken: &Taken) -> Result<()> {
    const SQL: &str = "UPDATE seats SET turn_id = $3 WHERE round_id = $1 AND seat = $2 AND turn_id IS NULL";
    let turn = match taken {
        Taken::Turn(turn) => turn.as_str(),
        Taken::Refused => REFUSED,
    };
    tx.execute(SQL, params![round, seat, turn]).map(drop)
}

pub fn close(tx: &mut Tx<'_>, round: &str) -> Result<()> {
    tx.execute("UPDATE rounds SET is_open = 0 WHERE round_id = $1", params![round])?;
    media::let_go(tx, round)
}

/// Forgets rounds that ended and began before this.
pub fn forget(tx: &mut Tx<'_>, before: Millis) -> Result<usize> {
    tx.execute("DELETE FROM rounds WHERE is_open = 0 AND created_at < $1", params![before])
}

fn read(row: &Row<'_>) -> Result<Round> {
    Ok(Round {
        id: row.text(0)?,
        text: row.text(1)?,
        parts: row.opt_text(2)?.map(|json| from_json(&json)).transpose()?.unwrap_or_default(),
        address: from_json(&row.text(3)?)?,
        meta: row.opt_text(4)?.map(|json| from_json(&json)).transpose()?,
        priority: JobPriority::ALL.get(row.count(5)?).copied().unwrap_or(JobPriority::Background),
        in_turn: row.flag(6)?,
        see_previous: row.flag(7)?,
        seats: Vec::new(),
        created_at: row.time(8)?,
    })
}
