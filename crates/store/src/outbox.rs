//! The outbox: durable messages on their way to a channel.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::delivery::{OutboxState, OutgoingMessage};
use polyclaw_domain::id::{NodeId, OutboxId, TurnId};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::jobs::earlier_epoch_prefix;
use crate::messages::{from_json, to_json};
use crate::params;
use crate::tx::{Row, Tx};

#[derive(Clone, Debug)]
pub struct OutboxMessage {
    pub id: OutboxId,
    /// Permanent key of this visible part.
    pub part_key: String,
    pub session: SessionKey,
    pub turn: TurnId,
    pub part: usize,
    pub address: ChatAddress,
    pub text: String,
    pub state: OutboxState,
    pub attempts: u32,
    pub expires_at: Millis,
    /// The platform's message id. It is set once the message is sent, or before if a draft is to be replaced.
    pub platform_id: Option<String>,
    pub error: Option<String>,
    pub created_at: Millis,
    pub updated_at: Millis,
}

impl OutboxMessage {
    /// Builds the `n`th notice sent besides a turn's reply. Its id is derived, so that a repeated transaction writes
    /// the same row.
    pub fn new_notice(
        (session, turn): (&SessionKey, &TurnId),
        n: usize,
        outgoing: &OutgoingMessage,
        (now, ttl_ms): (Millis, i64),
    ) -> Self {
        let id = format!("{turn}-{}-notice-{n}", now.0);
        Self {
            id: OutboxId::new(&id),
            part_key: id,
            session: session.clone(),
            turn: turn.clone(),
            part: n,
            address: outgoing.address().clone(),
            text: outgoing.text().to_owned(),
            state: OutboxState::Pending,
            attempts: 0,
            expires_at: now.plus(ttl_ms),
            platform_id: None,
            error: None,
            created_at: now,
            updated_at: now,
        }
    }
}

/// Stores a message and notifies other nodes, because another one may hold the account.
pub fn push(tx: &mut Tx<'_>, message: &OutboxMessage) -> Result<()> {
    const SQL: &str =
        "INSERT INTO outbox (id, part_key, session_key, turn_id, part, channel, address_json, text,
          state, next_at, expires_at, created_at, updated_at, platform_id, account)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'pending', $9, $10, $9, $9, $11, $12)";
    tx.execute(
        SQL,
        params![
            &message.id,
            &message.part_key,
            &message.session,
            &message.turn,
            message.part,
            &message.address.channel,
            &to_json(&message.address)?,
            &message.text,
            message.created_at,
            message.expires_at,
            message.platform_id.as_ref(),
            &message.address.account,
        ],
    )?;
    tx.notify_nodes("outbox")
}

macro_rules! select {
    ($($rest:expr),+) => {
        concat!(
            "SELECT o.id, o.part_key, o.session_key, o.turn_id, o.part, o.address_json, o.text, o.state,
             o.attempts, o.expires_at, o.platform_id, o.error, o.created_at, o.updated_at FROM outbox o ",
            $($rest),+
        )
    };
}

/// Parts that this node may send when they are due. Parts of a session are sent in order, so a later one waits for the
/// earlier ones. Parts of accounts leased by another node are excluded.
macro_rules! is_next {
    () => {
        "o.state = 'pending'
           AND NOT EXISTS (SELECT 1 FROM outbox e WHERE e.session_key = o.session_key
             AND e.state IN ('pending', 'sending') AND e.id < o.id)
           AND NOT EXISTS (SELECT 1 FROM account_leases h WHERE h.channel = o.channel AND h.account = o.account
             AND h.node <> $1 AND h.lease_until >= $2)"
    };
}

/// Lists the next parts to send.
pub fn list_due(tx: &mut Tx<'_>, node: &NodeId, now: Millis, limit: usize) -> Result<Vec<OutboxMessage>> {
    const SQL: &str = select!("WHERE ", is_next!(), " AND o.next_at <= $3 ORDER BY o.next_at LIMIT $4");
    let clock = tx.lease_clock(now);
    tx.query(SQL, params![node, clock, now, limit], outbox_message_from_row)
}

/// Returns when the next part is due, so that the loop can sleep until then.
pub fn next_due_at(tx: &mut Tx<'_>, node: &NodeId, now: Millis) -> Result<Option<Millis>> {
    const SQL: &str =
        concat!("SELECT o.next_at FROM outbox o WHERE ", is_next!(), " ORDER BY o.next_at LIMIT 1");
    let clock = tx.lease_clock(now);
    tx.query_one(SQL, params![node, clock], |row| row.time(0))
}

/// Marks a part as being sent. Returns `false` if another node has it.
pub fn mark_sending(
    tx: &mut Tx<'_>,
    id: &OutboxId,
    node: &NodeId,
    now: Millis,
    lease_ms: i64,
) -> Result<bool> {
    const SQL: &str =
        "UPDATE outbox SET state = 'sending', node = $2, lease_until = $3, attempts = attempts + 1,
        updated_at = $4 WHERE id = $1 AND state = 'pending'";
    let until = tx.lease_clock(now).plus(lease_ms);
    Ok(tx.execute(SQL, params![id, node, until, now])? == 1)
}

/// The result of sending a part. `next_at` only matters for `pending`.
#[derive(Clone, Debug)]
pub struct DeliveryOutcome {
    pub state: OutboxState,
    pub platform_id: Option<String>,
    pub error: Option<String>,
    pub next_at: Millis,
}

pub fn record_outcome(
    tx: &mut Tx<'_>,
    id: &OutboxId,
    outcome: &DeliveryOutcome,
    now: Millis,
) -> Result<bool> {
    const SQL: &str =
        "UPDATE outbox SET state = $2, platform_id = $3, error = $4, next_at = $5, updated_at = $6,
        node = NULL, lease_until = NULL WHERE id = $1";
    let params = params![
        id,
        outcome.state.as_str(),
        outcome.platform_id.as_ref(),
        outcome.error.as_ref(),
        outcome.next_at,
        now
    ];
    Ok(tx.execute(SQL, params)? == 1)
}

/// Lists parts whose sender died while sending, so it is unknown whether they arrived. Their rows are locked, so that a
/// sender that was only slow cannot settle one meanwhile.
pub fn lock_orphans(
    tx: &mut Tx<'_>,
    node: &NodeId,
    node_name: Option<&str>,
    now: Millis,
) -> Result<Vec<OutboxMessage>> {
    const SQL: &str = select!(
        "WHERE o.state = 'sending'
           AND (o.lease_until < $2 OR o.node <> $1 AND substr(o.node, 1, length($3)) = $3) ORDER BY o.lease_until /* skip locked */"
    );
    let now = tx.lease_clock(now);
    let earlier = earlier_epoch_prefix(node_name);
    tx.query(SQL, params![node, now, &earlier], outbox_message_from_row)
}

/// Makes parts due now that were scheduled before the clock was set back. A minute of tolerance allows for clock
/// differences between nodes.
pub fn reset_future_due_times(tx: &mut Tx<'_>, now: Millis) -> Result<usize> {
    const SQL: &str =
        "UPDATE outbox SET next_at = $1, updated_at = $1 WHERE state = 'pending' AND updated_at > $2";
    tx.execute(SQL, params![now, now.plus(60_000)])
}

/// Lists parts that have expired.
pub fn list_expired(tx: &mut Tx<'_>, now: Millis) -> Result<Vec<OutboxMessage>> {
    const SQL: &str = select!("WHERE o.state = 'pending' AND o.expires_at < $1 ORDER BY o.next_at, o.id");
    tx.query(SQL, params![now], outbox_message_from_row)
}

/// Counts parts that are not sent yet.
pub fn count_unsent(tx: &mut Tx<'_>) -> Result<i64> {
    const SQL: &str = "SELECT COUNT(*) FROM outbox WHERE state IN ('pending', 'sending')";
    Ok(tx.query_one(SQL, &[], |row| row.int(0))?.unwrap_or(0))
}

pub fn get(tx: &mut Tx<'_>, id: &OutboxId) -> Result<Option<OutboxMessage>> {
    tx.query_one(select!("WHERE o.id = $1"), params![id], outbox_message_from_row)
}

/// Returns the turn of a part.
pub fn find_turn(tx: &mut Tx<'_>, part_key: &str) -> Result<Option<TurnId>> {
    const SQL: &str = "SELECT turn_id FROM outbox WHERE part_key = $1";
    tx.query_one(SQL, params![part_key], |row| Ok(TurnId::new(row.text(0)?)))
}

pub fn list(
    tx: &mut Tx<'_>,
    state: Option<OutboxState>,
    after: &str,
    limit: usize,
) -> Result<Vec<OutboxMessage>> {
    const SQL: &str =
        select!("WHERE (CAST($1 AS TEXT) IS NULL OR o.state = $1) AND o.id > $2 ORDER BY o.id LIMIT $3");
    tx.query(SQL, params![state.map(OutboxState::as_str), after, limit], outbox_message_from_row)
}

fn outbox_message_from_row(row: &Row<'_>) -> Result<OutboxMessage> {
    Ok(OutboxMessage {
        id: OutboxId::new(row.text(0)?),
        part_key: row.text(1)?,
        session: row.session_key(2)?,
        turn: TurnId::new(row.text(3)?),
        part: row.count(4)?,
        address: from_json(&row.text(5)?)?,
        text: row.text(6)?,
        state: row.parse_column(7, OutboxState::parse)?,
        attempts: row.as_u32(8)?,
        expires_at: row.time(9)?,
        platform_id: row.opt_text(10)?,
        error: row.opt_text(11)?,
        created_at: row.time(12)?,
        updated_at: row.time(13)?,
    })
}
