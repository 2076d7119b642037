//! Todos: an agent's own todo list, one per session. It survives turns, restarts and compaction.

use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_domain::todo::TodoItem;

use crate::error::Result;
use crate::messages::{from_json, to_json};
use crate::params;
use crate::tx::Tx;

pub fn get(tx: &mut Tx<'_>, session: &SessionKey) -> Result<Vec<TodoItem>> {
    const SQL: &str = "SELECT items_json FROM todos WHERE session_key = $1";
    let stored = tx.query_one(SQL, params![session], |row| row.text(0))?;
    stored.map_or(Ok(Vec::new()), |json| from_json(&json))
}

/// Replaces the whole list.
pub fn replace_list(tx: &mut Tx<'_>, session: &SessionKey, items: &[TodoItem], now: Millis) -> Result<()> {
    const SQL: &str = "INSERT INTO todos (session_key, items_json, updated_at) VALUES ($1, $2, $3)
        ON CONFLICT (session_key) DO UPDATE SET items_json = excluded.items_json, updated_at = excluded.updated_at";
    tx.execute(SQL, params![session, &to_json(&items)?, now]).map(drop)
}

pub fn clear(tx: &mut Tx<'_>, session: &SessionKey) -> Result<()> {
    tx.execute("DELETE FROM todos WHERE session_key = $1", params![session]).map(drop)
}
