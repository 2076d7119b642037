//! Browser logins. The same table exists in the database of an instance and in the registry of a control plane.

use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::{Row, Tx};

/// Maximum number of logins per token. The least recently used are removed.
const MAX_LOGINS_PER_TOKEN: usize = 64;

/// Whose rights a login has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginOwner {
    /// The holder of the server's own token, by the token's hash: changing the token ends the login.
    Server { token_hash: String },
    /// An issued token, by its id.
    Token { id: String },
}

impl LoginOwner {
    fn owner_columns(&self) -> (Option<&str>, Option<&str>) {
        match self {
            Self::Server { token_hash } => (None, Some(token_hash)),
            Self::Token { id } => (Some(id), None),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLogin {
    pub id: String,
    pub owner: LoginOwner,
    /// User agent of the browser.
    pub client: String,
    pub created_at: Millis,
    pub used_at: Millis,
    pub expires_at: Millis,
}

/// Hashes of both halves of a login: the cookie, and the key that the page keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginHashes {
    pub cookie: String,
    pub key: String,
}

pub fn insert(tx: &mut Tx<'_>, login: &StoredLogin, hashes: &LoginHashes) -> Result<()> {
    const SQL: &str = "INSERT INTO logins
        (id, cookie_hash, key_hash, token_id, owner_hash, client, created_at, used_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    const DELETE_EXPIRED: &str = "DELETE FROM logins WHERE expires_at <= $1";
    const DELETE_SURPLUS: &str = "DELETE FROM logins WHERE id IN (SELECT id FROM logins
        WHERE COALESCE(token_id, '') = COALESCE($1, '') ORDER BY used_at DESC, id DESC LIMIT 1000 OFFSET $2)";
    let (token, owner) = login.owner.owner_columns();
    tx.execute(DELETE_EXPIRED, params![login.created_at])?;
    tx.execute(
        SQL,
        params![
            &login.id,
            &hashes.cookie,
            &hashes.key,
            token,
            owner,
            &login.client,
            login.created_at,
            login.used_at,
            login.expires_at
        ],
    )?;
    tx.execute(DELETE_SURPLUS, params![token.unwrap_or_default(), MAX_LOGINS_PER_TOKEN]).map(drop)
}

/// Returns the unexpired login of a cookie, with the hash of its key.
pub fn find_by_cookie(
    tx: &mut Tx<'_>,
    cookie_hash: &str,
    now: Millis,
) -> Result<Option<(StoredLogin, String)>> {
    const SQL: &str = "SELECT id, token_id, owner_hash, client, created_at, used_at, expires_at, key_hash
        FROM logins WHERE cookie_hash = $1 AND expires_at > $2";
    tx.query_one(SQL, params![cookie_hash, now], |row| Ok((login_from_row(row)?, row.text(7)?)))
}

/// Lists unexpired logins, most recently used first; optionally those of one token.
pub fn list(tx: &mut Tx<'_>, token: Option<&str>, now: Millis) -> Result<Vec<StoredLogin>> {
    const SQL: &str = "SELECT id, token_id, owner_hash, client, created_at, used_at, expires_at
        FROM logins WHERE expires_at > $1 AND ($2 = '' OR token_id = $2) ORDER BY used_at DESC, id DESC";
    tx.query(SQL, params![now, token.unwrap_or_default()], login_from_row)
}

pub fn mark_used(tx: &mut Tx<'_>, id: &str, now: Millis) -> Result<()> {
    tx.execute("UPDATE logins SET used_at = $2 WHERE id = $1 AND used_at < $2", params![id, now]).map(drop)
}

/// Removes a login, optionally only if it belongs to `token`. Returns whether there was one.
pub fn remove(tx: &mut Tx<'_>, id: &str, token: Option<&str>) -> Result<bool> {
    const SQL: &str = "DELETE FROM logins WHERE id = $1 AND ($2 = '' OR token_id = $2)";
    Ok(tx.execute(SQL, params![id, token.unwrap_or_default()])? > 0)
}

/// Removes the logins of a token and returns their ids.
pub fn remove_by_token(tx: &mut Tx<'_>, token: &str) -> Result<Vec<String>> {
    tx.query("DELETE FROM logins WHERE token_id = $1 RETURNING id", params![token], |row| row.text(0))
}

/// Removes the earlier login of a browser that logs in again.
pub fn remove_by_cookie(tx: &mut Tx<'_>, cookie_hash: &str) -> Result<()> {
    tx.execute("DELETE FROM logins WHERE cookie_hash = $1", params![cookie_hash]).map(drop)
}

fn login_from_row(row: &Row<'_>) -> Result<StoredLogin> {
    let owner = match (row.opt_text(1)?, row.opt_text(2)?) {
        (Some(id), _) => LoginOwner::Token { id },
        (None, token_hash) => LoginOwner::Server { token_hash: token_hash.unwrap_or_default() },
    };
    Ok(StoredLogin {
        id: row.text(0)?,
        owner,
        client: row.text(3)?,
        created_at: row.time(4)?,
        used_at: row.time(5)?,
        expires_at: row.time(6)?,
    })
}
