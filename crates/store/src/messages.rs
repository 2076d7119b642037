//! Messages of a session, ordered by position. A queued message belongs to the turn that will answer it and gets its
//! final position when that turn starts, so it is never between a call and its result in the transcript.

use polyclaw_domain::author::MessageAuthor;
use polyclaw_domain::channel::{ChatAddress, INTERNAL_CHANNEL};
use polyclaw_domain::id::{MessageId, SessionId, TurnId};
use polyclaw_domain::message::{MessageOrigin, MessagePart, MessageRole, attached_images};
use polyclaw_domain::prompt::TranscriptLine;
use polyclaw_domain::run;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::jobs::TurnClaim;
use crate::tx::{Row, Tx};
use crate::{media, params, sessions};

#[derive(Clone, Debug)]
pub struct SessionMessage {
    pub id: MessageId,
    pub session: SessionKey,
    pub session_id: SessionId,
    pub position: i64,
    pub role: MessageRole,
    pub text: String,
    pub parts: Vec<MessagePart>,
    pub origin: MessageOrigin,
    pub channel: String,
    pub deliver: bool,
    pub address: Option<ChatAddress>,
    pub meta: Option<Value>,
    pub idempotency_key: Option<String>,
    pub turn: TurnId,
    pub created_at: Millis,
}

impl SessionMessage {
    /// Whether the reply ended at the model's length limit.
    pub fn is_truncated(&self) -> bool {
        let reason = self.meta.as_ref().and_then(|meta| meta.get("finish_reason"));
        reason.is_some_and(|reason| reason == "length")
    }

    /// Attaches the partial answer streamed before a turn was cut off to the message that says why.
    pub fn set_partial_text(&mut self, words: &str) {
        self.meta.get_or_insert_with(|| json!({}))["said"] = words.into();
    }

    /// Builds an internal message that the runtime writes for a turn: not delivered and without an address.
    pub fn new_internal(id: MessageId, claim: &TurnClaim, session_id: SessionId, now: Millis) -> Self {
        Self {
            id,
            session: claim.session.clone(),
            session_id,
            position: 0,
            role: MessageRole::Assistant,
            text: String::new(),
            parts: Vec::new(),
            origin: MessageOrigin::Agent(claim.agent.clone()),
            channel: INTERNAL_CHANNEL.to_owned(),
            deliver: false,
            address: None,
            meta: None,
            idempotency_key: None,
            turn: claim.turn.clone(),
            created_at: now,
        }
    }
}

pub fn insert(tx: &mut Tx<'_>, message: &SessionMessage) -> Result<()> {
    insert_at(tx, message, message.position)
}

/// Stores a message at a position allocated by the transaction, with its images.
pub fn insert_at(tx: &mut Tx<'_>, message: &SessionMessage, ticket: i64) -> Result<()> {
    const SQL: &str =
        "INSERT INTO messages (id, session_key, session_id, position, role, text, parts_json, origin,
          channel, deliver, address_json, meta_json, idempotency_key, turn_id, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";
    let parts = if message.parts.is_empty() { None } else { Some(to_json(&message.parts)?) };
    let address = message.address.as_ref().map(to_json).transpose()?;
    let meta = message.meta.as_ref().map(to_json).transpose()?;
    tx.execute(
        SQL,
        params![
            &message.id,
            &message.session,
            &message.session_id,
            ticket,
            message.role.as_str(),
            &message.text,
            parts.as_ref(),
            message.origin.to_string().as_str(),
            &message.channel,
            message.deliver,
            address.as_ref(),
            meta.as_ref(),
            message.idempotency_key.as_ref(),
            &message.turn,
            message.created_at,
        ],
    )?;
    attached_images(&message.parts)
        .try_for_each(|image| media::attach_to_message(tx, &message.id, image, message.created_at))
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, session_key, session_id, position, role, text, parts_json, origin, channel, deliver,
             address_json, meta_json, idempotency_key, turn_id, created_at FROM messages ",
            $rest
        )
    };
}

pub fn get(tx: &mut Tx<'_>, id: &MessageId) -> Result<Option<SessionMessage>> {
    tx.query_one(select!("WHERE id = $1"), params![id], message_from_row)
}

pub fn find_by_key(tx: &mut Tx<'_>, session: &SessionKey, key: &str) -> Result<Option<(MessageId, TurnId)>> {
    const SQL: &str = "SELECT id, turn_id FROM messages WHERE session_key = $1 AND idempotency_key = $2";
    tx.query_one(SQL, params![session, key], |row| {
        Ok((MessageId::new(row.text(0)?), TurnId::new(row.text(1)?)))
    })
}

/// Returns the newest idempotency key in a session.
pub fn find_last_key(tx: &mut Tx<'_>, session: &SessionKey) -> Result<Option<String>> {
    const SQL: &str =
        "SELECT idempotency_key FROM messages WHERE session_key = $1 AND idempotency_key IS NOT NULL
        ORDER BY position DESC LIMIT 1";
    tx.query_one(SQL, params![session], |row| row.text(0))
}

/// Lists all messages of a turn: its inputs, then its steps.
pub fn list_by_turn(tx: &mut Tx<'_>, turn: &TurnId) -> Result<Vec<SessionMessage>> {
    tx.query(select!("WHERE turn_id = $1 ORDER BY position"), params![turn], message_from_row)
}

/// Replaces a message's metadata.
pub fn set_meta(tx: &mut Tx<'_>, id: &MessageId, meta: &serde_json::Value) -> Result<()> {
    tx.execute("UPDATE messages SET meta_json = $2 WHERE id = $1", params![id, &to_json(meta)?]).map(drop)
}

/// Removes a message that another one replaces.
pub fn remove(tx: &mut Tx<'_>, id: &MessageId) -> Result<()> {
    tx.execute("DELETE FROM messages WHERE id = $1", params![id]).map(drop)
}

/// Moves a queued turn's inputs behind everything stored meanwhile, in the same order.
pub fn move_to_end(tx: &mut Tx<'_>, session: &SessionKey, turn: &TurnId, now: Millis) -> Result<()> {
    const FIND_IDS: &str = "SELECT id FROM messages WHERE turn_id = $1 ORDER BY position";
    // If a new conversation was started meanwhile, they are answered in that one.
    const MOVE_MESSAGE: &str = "UPDATE messages SET position = $2, session_id =
        (SELECT s.session_id FROM sessions s WHERE s.session_key = messages.session_key) WHERE id = $1";
    let ids = tx.query(FIND_IDS, params![turn], |row| row.text(0))?;
    let first = sessions::allocate_positions(tx, session, ids.len(), now)?.unwrap_or_default();
    for (ticket, id) in (first..).zip(&ids) {
        tx.execute(MOVE_MESSAGE, params![id, ticket])?;
    }
    Ok(())
}

/// Loads the lines of a prompt: everything of one session id after `after`, without the inputs of `queued`. Error texts
/// for people are not shown to the model as its own words. It only sees how far a failed turn came, so that it does not
/// take the task for a pending one.
pub fn load_history(
    tx: &mut Tx<'_>,
    (session, id): (&SessionKey, &SessionId),
    after: i64,
    queued: Option<&TurnId>,
) -> Result<Vec<TranscriptLine>> {
    const SQL: &str = "SELECT position, role, origin, text, parts_json, meta_json FROM messages
        WHERE session_key = $1 AND position > $2 AND turn_id <> $3 AND session_id = $4 ORDER BY position";
    let queued = queued.map_or("", TurnId::as_str);
    let lines = tx.query(SQL, params![session, after, queued, id], |row| {
        let (role, meta) = (row.parse_column(1, MessageRole::parse)?, meta_from_row(row, 5)?);
        if meta.as_ref().is_some_and(run::is_shown_reply) {
            return Ok(None);
        }
        let failure = meta.as_ref().filter(|_| role == MessageRole::Assistant).and_then(failure_text);
        let mut text = failure.map_or_else(|| row.text(3), Ok)?;
        let origin = row.parse_column(2, MessageOrigin::parse)?;
        let is_internal = role == MessageRole::User && matches!(origin, MessageOrigin::Agent(_));
        if let Some(details) = meta.as_ref().filter(|_| is_internal).and_then(run::transcript_details) {
            text.push('\n');
            text.push_str(&details);
        }
        Ok(Some(TranscriptLine {
            position: row.int(0)?,
            role,
            origin,
            text,
            parts: parts_from_row(row, 4)?,
            author: meta.as_ref().and_then(MessageAuthor::from_shared_meta),
        }))
    })?;
    Ok(lines.into_iter().flatten().collect())
}

/// Returns the text that a model sees in place of a failed answer.
fn failure_text(meta: &Value) -> Option<String> {
    let code = meta["error"].as_str()?;
    Some(match meta["said"].as_str() {
        Some(words) => format!("{words}\n[cut off: {code}]"),
        None => format!("[no answer: {code}]"),
    })
}

/// Returns a page of the transcript of one session id, without queued messages.
pub fn list_page(
    tx: &mut Tx<'_>,
    session: &SessionKey,
    id: &SessionId,
    after: i64,
    limit: usize,
) -> Result<Vec<SessionMessage>> {
    const SQL: &str = select!(
        "WHERE session_key = $1 AND position > $2 AND session_id = $3
           AND turn_id NOT IN (SELECT j.turn_id FROM jobs j WHERE j.session_key = $1 AND j.state = 'queued')
         ORDER BY position LIMIT $4"
    );
    tx.query(SQL, params![session, after, id, limit], message_from_row)
}

/// Returns the newest messages of a conversation, in order.
pub fn list_newest(
    tx: &mut Tx<'_>,
    session: &SessionKey,
    id: &SessionId,
    limit: usize,
) -> Result<Vec<SessionMessage>> {
    const SQL: &str = select!("WHERE session_key = $1 AND session_id = $2 ORDER BY position DESC LIMIT $3");
    let mut found = tx.query(SQL, params![session, id, limit], message_from_row)?;
    found.reverse();
    Ok(found)
}

/// Returns the messages of all conversations of a session after a position, in order.
pub fn list_all(
    tx: &mut Tx<'_>,
    session: &SessionKey,
    after: i64,
    limit: usize,
) -> Result<Vec<SessionMessage>> {
    const SQL: &str = select!("WHERE session_key = $1 AND position > $2 ORDER BY position LIMIT $3");
    tx.query(SQL, params![session, after, limit], message_from_row)
}

/// The turns that lines of one session id belong to: those behind `after`, up to and with `through`.
pub fn list_turns_between(
    tx: &mut Tx<'_>,
    (session, id): (&SessionKey, &SessionId),
    (after, through): (i64, i64),
) -> Result<Vec<TurnId>> {
    const SQL: &str = "SELECT DISTINCT turn_id FROM messages
        WHERE session_key = $1 AND session_id = $2 AND position > $3 AND position <= $4";
    tx.query(SQL, params![session, id, after, through], |row| Ok(TurnId::new(row.text(0)?)))
}

/// Inputs of the turn that has not started yet.
pub fn list_waiting(tx: &mut Tx<'_>, session: &SessionKey) -> Result<Vec<SessionMessage>> {
    const SQL: &str = select!(
        "WHERE turn_id IN (SELECT j.turn_id FROM jobs j WHERE j.session_key = $1 AND j.state = 'queued')
         ORDER BY position"
    );
    tx.query(SQL, params![session], message_from_row)
}

/// Whether somebody has written from an address in the session's current conversation.
pub fn has_message_from(tx: &mut Tx<'_>, session: &SessionKey, address: &ChatAddress) -> Result<bool> {
    const SQL: &str = "SELECT 1 FROM messages m JOIN sessions s ON s.session_key = m.session_key
        WHERE m.session_key = $1 AND m.session_id = s.session_id AND m.address_json = $2 LIMIT 1";
    Ok(tx.query_one(SQL, params![session, &to_json(address)?], |_| Ok(()))?.is_some())
}

/// Returns the addresses from which somebody wrote in a session, newest first, among the newest `most` messages.
pub fn list_last_addresses(tx: &mut Tx<'_>, session: &SessionKey, most: usize) -> Result<Vec<ChatAddress>> {
    const SQL: &str = "SELECT address_json FROM messages WHERE session_key = $1 AND address_json IS NOT NULL
        ORDER BY position DESC LIMIT $2";
    tx.query(SQL, params![session, most], |row| from_json(&row.text(0)?))
}

/// Returns the time of the newest message, in any conversation of the session.
pub fn last_message_at(tx: &mut Tx<'_>, session: &SessionKey) -> Result<Option<Millis>> {
    const SQL: &str = "SELECT created_at FROM messages WHERE session_key = $1 ORDER BY position DESC LIMIT 1";
    tx.query_one(SQL, params![session], |row| row.time(0))
}

/// Returns the position of the newest stored message, or 0.
pub fn last_position(tx: &mut Tx<'_>, session: &SessionKey) -> Result<i64> {
    const SQL: &str = "SELECT COALESCE(MAX(position), 0) FROM messages WHERE session_key = $1";
    Ok(tx.query_one(SQL, params![session], |row| row.int(0))?.unwrap_or(0))
}

fn message_from_row(row: &Row<'_>) -> Result<SessionMessage> {
    Ok(SessionMessage {
        id: MessageId::new(row.text(0)?),
        session: row.session_key(1)?,
        session_id: SessionId::new(row.text(2)?),
        position: row.int(3)?,
        role: row.parse_column(4, MessageRole::parse)?,
        text: row.text(5)?,
        parts: parts_from_row(row, 6)?,
        origin: row.parse_column(7, MessageOrigin::parse)?,
        channel: row.text(8)?,
        deliver: row.flag(9)?,
        address: row.opt_text(10)?.map(|json| from_json(&json)).transpose()?,
        meta: meta_from_row(row, 11)?,
        idempotency_key: row.opt_text(12)?,
        turn: TurnId::new(row.text(13)?),
        created_at: row.time(14)?,
    })
}

fn meta_from_row(row: &Row<'_>, at: usize) -> Result<Option<serde_json::Value>> {
    row.opt_text(at)?.map(|json| from_json(&json)).transpose()
}

fn parts_from_row(row: &Row<'_>, at: usize) -> Result<Vec<MessagePart>> {
    row.opt_text(at)?.map_or(Ok(Vec::new()), |json| from_json(&json))
}

pub(crate) fn to_json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::Other(e.to_string()))
}

pub(crate) fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|e| Error::Unreadable(e.to_string()))
}
