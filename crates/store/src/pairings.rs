//! Pairings: senders that wait for approval, and approved ones. One row for each sender of an account.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::pairing::{MAX_PENDING_CODES, PairingCode};
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::messages::{from_json, to_json};
use crate::params;
use crate::tx::{Row, Tx};

/// A sender, by the platform's id, and the account written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairingSender {
    pub channel: String,
    pub account: String,
    pub id: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Pairing {
    pub sender: PairingSender,
    /// The platform's display name of the sender.
    pub name: Option<String>,
    pub code: PairingCode,
    pub is_approved: bool,
    /// The address for replies.
    pub address: ChatAddress,
    /// Language in which the sender got the code.
    pub locale: Locale,
    pub created_at: Millis,
    /// When the code expires. Approvals do not expire.
    pub expires_at: Millis,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT channel, account, sender, sender_name, code, state, address_json, created_at, expires_at,
             language FROM pairings ",
            $rest
        )
    };
}

pub fn is_paired(tx: &mut Tx<'_>, sender: &PairingSender) -> Result<bool> {
    const SQL: &str = "SELECT state FROM pairings WHERE channel = $1 AND account = $2 AND sender = $3";
    let params = params![&sender.channel, &sender.account, &sender.id];
    Ok(tx.query_one(SQL, params, |row| row.text(0))?.as_deref() == Some("approved"))
}

/// Returns a sender's pending code and when it was last sent.
pub fn find_pending_code(
    tx: &mut Tx<'_>,
    sender: &PairingSender,
    now: Millis,
) -> Result<Option<(PairingCode, Millis)>> {
    const SQL: &str = "SELECT code, notified_at FROM pairings
        WHERE channel = $1 AND account = $2 AND sender = $3 AND state = 'pending' AND expires_at > $4";
    let params = params![&sender.channel, &sender.account, &sender.id, now];
    tx.query_one(SQL, params, |row| Ok((row.parse_column(0, PairingCode::parse)?, row.time(1)?)))
}

/// Records that a sender was sent the code again.
pub fn mark_code_sent(tx: &mut Tx<'_>, sender: &PairingSender, now: Millis) -> Result<()> {
    const SQL: &str =
        "UPDATE pairings SET notified_at = $4 WHERE channel = $1 AND account = $2 AND sender = $3";
    tx.execute(SQL, params![&sender.channel, &sender.account, &sender.id, now]).map(drop)
}

/// Adds a pending sender. Returns `false` if there are too many. If two race for the last slot, its unique index
/// makes one of them fail.
pub fn insert_pending(tx: &mut Tx<'_>, pairing: &Pairing, now: Millis) -> Result<bool> {
    const SQL: &str = "INSERT INTO pairings (channel, account, sender, sender_name, code, state, slot,
          address_json, notified_at, created_at, expires_at, language)
        VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7, $8, $8, $9, $10)";
    delete_expired(tx, now)?;
    let PairingSender { channel, account, id } = &pairing.sender;
    let Some(slot) = find_free_slot(tx, channel, account)? else { return Ok(false) };
    let (name, code) = (pairing.name.as_ref(), pairing.code.as_str());
    let (address, expires_at) = (to_json(&pairing.address)?, pairing.expires_at);
    let language = pairing.locale.tag();
    tx.execute(SQL, params![channel, account, id, name, code, slot, &address, now, expires_at, language])?;
    Ok(true)
}

fn find_free_slot(tx: &mut Tx<'_>, channel: &str, account: &str) -> Result<Option<usize>> {
    const SQL: &str = "SELECT slot FROM pairings WHERE channel = $1 AND account = $2 AND state = 'pending'";
    let taken = tx.query(SQL, params![channel, account], |row| row.count(0))?;
    Ok((1..=MAX_PENDING_CODES).find(|slot| !taken.contains(slot)))
}

/// Approves the sender with this code. `None` if the code is unknown or expired.
pub fn approve(tx: &mut Tx<'_>, code: &PairingCode, now: Millis) -> Result<Option<Pairing>> {
    const SQL: &str = "UPDATE pairings SET state = 'approved', slot = NULL
        WHERE code = $1 AND state = 'pending' AND expires_at > $2";
    let waiting = select!("WHERE code = $1 AND state = 'pending' AND expires_at > $2");
    let found = tx.query_one(waiting, params![code.as_str(), now], pairing_from_row)?;
    let changed = tx.execute(SQL, params![code.as_str(), now])?;
    Ok(found.filter(|_| changed == 1).map(|found| Pairing { is_approved: true, ..found }))
}

/// Removes a sender's approval or code. Returns `false` if there was none.
pub fn revoke(tx: &mut Tx<'_>, sender: &PairingSender) -> Result<bool> {
    const SQL: &str = "DELETE FROM pairings WHERE channel = $1 AND account = $2 AND sender = $3";
    Ok(tx.execute(SQL, params![&sender.channel, &sender.account, &sender.id])? > 0)
}

/// Lists pending senders, then approved ones.
pub fn list(tx: &mut Tx<'_>, now: Millis) -> Result<Vec<Pairing>> {
    let all = select!(
        "WHERE state = 'approved' OR expires_at > $1 ORDER BY state DESC, created_at, channel, account, sender"
    );
    tx.query(all, params![now], pairing_from_row)
}

pub fn delete_expired(tx: &mut Tx<'_>, now: Millis) -> Result<usize> {
    tx.execute("DELETE FROM pairings WHERE state = 'pending' AND expires_at <= $1", params![now])
}

fn pairing_from_row(row: &Row<'_>) -> Result<Pairing> {
    Ok(Pairing {
        sender: PairingSender { channel: row.text(0)?, account: row.text(1)?, id: row.text(2)? },
        name: row.opt_text(3)?,
        code: row.parse_column(4, PairingCode::parse)?,
        is_approved: row.text(5)? == "approved",
        address: from_json(&row.text(6)?)?,
        created_at: row.time(7)?,
        expires_at: row.time(8)?,
        locale: row.parse_column(9, Locale::from_tag)?,
    })
}
