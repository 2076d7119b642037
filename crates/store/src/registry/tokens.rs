//! Issued access tokens. Only hashes of tokens are stored.

use polyclaw_domain::id::InstanceId;
use polyclaw_domain::instance::TokenAccess;
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::{Row, Tx};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessToken {
    pub id: String,
    pub name: String,
    pub access: TokenAccess,
    /// The instance it belongs to, if any.
    pub instance: Option<InstanceId>,
    pub created_at: Millis,
    pub revoked_at: Option<Millis>,
}

/// Adds a token. An instance's new token replaces its old one.
pub fn insert_or_replace(tx: &mut Tx<'_>, token: &AccessToken, hash: &str) -> Result<()> {
    const DELETE_PREVIOUS: &str = "DELETE FROM tokens WHERE instance_id = $1";
    const SQL: &str = "INSERT INTO tokens (id, name, access, hash, instance_id, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)";
    tx.execute(DELETE_PREVIOUS, params![token.instance.as_ref()])?;
    let params = params![
        &token.id,
        &token.name,
        token.access.as_str(),
        hash,
        token.instance.as_ref(),
        token.created_at
    ];
    tx.execute(SQL, params).map(drop)
}

/// Returns the token with this hash, unless it was revoked.
pub fn find_by_hash(tx: &mut Tx<'_>, hash: &str) -> Result<Option<AccessToken>> {
    const SQL: &str = "SELECT id, name, access, instance_id, created_at, revoked_at FROM tokens
        WHERE hash = $1 AND revoked_at IS NULL";
    tx.query_one(SQL, params![hash], access_token_from_row)
}

/// Returns the token with this id, unless it was revoked or belongs to an instance.
pub fn find_by_id(tx: &mut Tx<'_>, id: &str) -> Result<Option<AccessToken>> {
    const SQL: &str = "SELECT id, name, access, instance_id, created_at, revoked_at FROM tokens
        WHERE id = $1 AND instance_id IS NULL AND revoked_at IS NULL";
    tx.query_one(SQL, params![id], access_token_from_row)
}

/// Lists tokens created by people, newest first. `behind` is a paging cursor: creation time and id.
pub fn list(tx: &mut Tx<'_>, behind: Option<(Millis, String)>, limit: usize) -> Result<Vec<AccessToken>> {
    const SQL: &str = "SELECT id, name, access, instance_id, created_at, revoked_at FROM tokens
        WHERE instance_id IS NULL AND (created_at < $1 OR (created_at = $1 AND id < $2))
        ORDER BY created_at DESC, id DESC LIMIT $3";
    let (at, id) = behind.unwrap_or((Millis(i64::MAX), String::new()));
    tx.query(SQL, params![at, &id, limit], access_token_from_row)
}

/// Revokes a token and returns its hash, or `None` if there was none to revoke.
pub fn revoke(tx: &mut Tx<'_>, id: &str, now: Millis) -> Result<Option<String>> {
    const SQL: &str = "UPDATE tokens SET revoked_at = $2
        WHERE id = $1 AND instance_id IS NULL AND revoked_at IS NULL RETURNING hash";
    tx.query_one(SQL, params![id, now], |row| row.text(0))
}

fn access_token_from_row(row: &Row<'_>) -> Result<AccessToken> {
    Ok(AccessToken {
        id: row.text(0)?,
        name: row.text(1)?,
        access: row.parse_column(2, TokenAccess::parse)?,
        instance: row.opt_text(3)?.map(InstanceId::new),
        created_at: row.time(4)?,
        revoked_at: row.opt_time(5)?,
    })
}
