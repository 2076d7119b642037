//! Agents: stored `AgentSpec`s.

use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::time::Millis;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::params;
use crate::tx::{Row, Tx};

/// The origin of a spec. At startup the config file overwrites its own specs; those of the API exist only in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentSource {
    Config,
    Api,
}

impl AgentSource {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Api => "api",
        }
    }
}

#[derive(Clone, Debug)]
pub struct StoredAgent {
    pub spec: AgentSpec,
    pub source: AgentSource,
    pub created_at: Millis,
    pub updated_at: Millis,
}

pub fn upsert(tx: &mut Tx<'_>, spec: &AgentSpec, source: AgentSource, now: Millis) -> Result<()> {
    const SQL: &str =
        "INSERT INTO agent_specs (agent_id, name, config_json, source, created_at, updated_at, priority)
        VALUES ($1, $2, $3, $4, $5, $5, $6)
        ON CONFLICT (agent_id) DO UPDATE SET name = excluded.name, config_json = excluded.config_json,
          source = excluded.source, updated_at = excluded.updated_at, priority = excluded.priority";
    let json = serde_json::to_string(spec).map_err(|e| Error::Other(e.to_string()))?;
    tx.execute(
        SQL,
        params![&spec.agent_id, &spec.name, &json, source.as_str(), now, i64::from(spec.priority)],
    )
    .map(drop)
}

pub fn get(tx: &mut Tx<'_>, id: &AgentId) -> Result<Option<StoredAgent>> {
    const SQL: &str =
        "SELECT config_json, source, created_at, updated_at FROM agent_specs WHERE agent_id = $1";
    tx.query_one(SQL, params![id], agent_from_row)
}

pub fn list(tx: &mut Tx<'_>) -> Result<Vec<StoredAgent>> {
    const SQL: &str = "SELECT config_json, source, created_at, updated_at FROM agent_specs ORDER BY agent_id";
    tx.query(SQL, &[], agent_from_row)
}

pub fn delete(tx: &mut Tx<'_>, id: &AgentId) -> Result<bool> {
    Ok(tx.execute("DELETE FROM agent_specs WHERE agent_id = $1", params![id])? > 0)
}

/// Returns the merge patch applied to an agent that the config does not define.
pub fn get_overlay(tx: &mut Tx<'_>, id: &AgentId) -> Result<Option<Value>> {
    let read =
        |row: &Row<'_>| serde_json::from_str(&row.text(0)?).map_err(|e| Error::Unreadable(e.to_string()));
    tx.query_one("SELECT patch_json FROM agent_overlays WHERE agent_id = $1", params![id], read)
}

/// Stores the overlay. An empty patch removes it.
pub fn set_overlay(tx: &mut Tx<'_>, id: &AgentId, patch: &Value, now: Millis) -> Result<()> {
    const SQL: &str = "INSERT INTO agent_overlays (agent_id, patch_json, updated_at) VALUES ($1, $2, $3)
        ON CONFLICT (agent_id) DO UPDATE SET patch_json = excluded.patch_json, updated_at = excluded.updated_at";
    if patch.as_object().is_none_or(Map::is_empty) {
        return tx.execute("DELETE FROM agent_overlays WHERE agent_id = $1", params![id]).map(drop);
    }
    tx.execute(SQL, params![id, &patch.to_string(), now]).map(drop)
}

/// Removes agents that the config file no longer names. Their sessions stay readable.
pub fn retain_configured(tx: &mut Tx<'_>, configured: &[AgentId]) -> Result<()> {
    const SQL: &str = "SELECT agent_id FROM agent_specs WHERE source = 'config'";
    for id in tx.query(SQL, &[], |row| row.agent_id(0))? {
        if !configured.contains(&id) {
            delete(tx, &id)?;
        }
    }
    Ok(())
}

fn agent_from_row(row: &Row<'_>) -> Result<StoredAgent> {
    let spec = serde_json::from_str(&row.text(0)?).map_err(|e| Error::Unreadable(e.to_string()))?;
    let source = if row.text(1)? == "config" { AgentSource::Config } else { AgentSource::Api };
    Ok(StoredAgent { spec, source, created_at: row.time(2)?, updated_at: row.time(3)? })
}
