//! Drafts: messages that a platform shows while an answer streams, and that the final answer replaces.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::messages::{from_json, to_json};
use crate::params;
use crate::tx::Tx;

/// Records that a draft is about to be sent.
pub fn insert(tx: &mut Tx<'_>, turn: &TurnId, address: &ChatAddress, now: Millis) -> Result<()> {
    const SQL: &str = "INSERT INTO drafts (turn_id, address_json, created_at) VALUES ($1, $2, $3)
        ON CONFLICT (turn_id, address_json) DO NOTHING";
    tx.execute(SQL, params![turn, &to_json(address)?, now]).map(drop)
}

/// Sets the platform's id of a draft.
pub fn set_platform_id(
    tx: &mut Tx<'_>,
    turn: &TurnId,
    address: &ChatAddress,
    platform_id: &str,
) -> Result<()> {
    const SQL: &str = "UPDATE drafts SET platform_id = $3 WHERE turn_id = $1 AND address_json = $2";
    tx.execute(SQL, params![turn, &to_json(address)?, platform_id]).map(drop)
}

/// Removes a draft that the platform rejected or that becomes permanent.
pub fn delete(tx: &mut Tx<'_>, turn: &TurnId, address: &ChatAddress) -> Result<()> {
    const SQL: &str = "DELETE FROM drafts WHERE turn_id = $1 AND address_json = $2";
    tx.execute(SQL, params![turn, &to_json(address)?]).map(drop)
}

/// A draft that was about to be sent, and the platform's id if it is known to exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDraft {
    pub address: ChatAddress,
    pub platform_id: Option<String>,
    pub at: Millis,
}

/// Lists the drafts of a turn.
pub fn list_by_turn(tx: &mut Tx<'_>, turn: &TurnId) -> Result<Vec<StoredDraft>> {
    const SQL: &str =
        "SELECT address_json, platform_id, created_at FROM drafts WHERE turn_id = $1 ORDER BY address_json";
    tx.query(SQL, params![turn], |row| {
        Ok(StoredDraft {
            address: from_json(&row.text(0)?)?,
            platform_id: row.opt_text(1)?,
            at: Millis(row.int(2)?),
        })
    })
}

/// Removes the drafts of an ended turn, whose answer has replaced them.
pub fn delete_by_turn(tx: &mut Tx<'_>, turn: &TurnId) -> Result<()> {
    tx.execute("DELETE FROM drafts WHERE turn_id = $1", params![turn]).map(drop)
}
