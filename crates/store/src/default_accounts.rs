//! The default account of each channel.

use crate::error::Result;
use crate::params;
use crate::tx::Tx;

/// Lists the channels with a known default account.
pub fn list(tx: &mut Tx<'_>) -> Result<Vec<(String, String)>> {
    const SQL: &str = "SELECT channel, account FROM default_accounts ORDER BY channel";
    tx.query(SQL, &[], |row| Ok((row.text(0)?, row.text(1)?)))
}

pub fn upsert(tx: &mut Tx<'_>, channel: &str, account: &str) -> Result<()> {
    const SQL: &str = "INSERT INTO default_accounts (channel, account) VALUES ($1, $2)
        ON CONFLICT (channel) DO UPDATE SET account = excluded.account";
    tx.execute(SQL, params![channel, account]).map(drop)
}

/// Finds the account whose group sessions have no account in their key. This is the default account of a home that is
/// older than this table.
pub fn infer_from_sessions(tx: &mut Tx<'_>, channel: &str) -> Result<Option<String>> {
    const SQL: &str = "SELECT account FROM sessions WHERE channel = $1 AND account IS NOT NULL
          AND (session_key LIKE 'agent:%:' || $1 || ':group:%' OR session_key LIKE 'agent:%:' || $1 || ':channel:%')
        ORDER BY created_at LIMIT 1";
    Ok(tx.query_one(SQL, params![channel], |row| row.opt_text(0))?.flatten())
}
