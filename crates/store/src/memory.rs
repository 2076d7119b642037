//! Memories, in a database file of their own. Every query that answers an agent is restricted to the owners visible to
//! it; nothing else in this crate reads `memories` for an agent.

use polyclaw_domain::agent::MemoryScope;
use polyclaw_domain::id::{AgentId, MemoryId};
use polyclaw_domain::memory::{MemoryEntry, MemoryViewer, words};
use polyclaw_domain::recall::MemorySeq;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;

use crate::error::{Error, Result};
use crate::params;
use crate::tx::{Row, Tx};

mod search;
mod vectors;

pub use search::search_by_words;
pub use vectors::{
    PendingEmbedding as StoredVector, QuantizedVector, list_pending_embeddings, quantize_vector,
    requeue_other_models, scan_vectors, store_vector,
};

/// A stored memory.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryUpsert {
    pub seq: MemorySeq,
    pub id: MemoryId,
    pub owner: i64,
    /// It replaced a memory of the same owner and key.
    pub replaced: bool,
}

/// Stores a memory. One of the same owner and key is replaced; it keeps its id and creation time.
pub fn upsert(tx: &mut Tx<'_>, memory: &MemoryEntry) -> Result<MemoryUpsert> {
    const FIND_EXISTING: &str = "SELECT seq, id FROM memories WHERE owner = $1 AND key = $2";
    const SQL: &str =
        "INSERT INTO memories (id, owner, scope, agent_id, session_key, key, kind, content, metadata,
          terms, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
        ON CONFLICT (owner, key) DO UPDATE SET session_key = excluded.session_key, kind = excluded.kind,
          content = excluded.content, metadata = excluded.metadata, terms = excluded.terms,
          updated_at = excluded.updated_at
        RETURNING seq, id";
    let owner = ensure_owner(tx, memory)?;
    let known = tx.query_one(FIND_EXISTING, params![owner, &memory.key], |row| row.int(0))?;
    let metadata = serde_json::to_string(&memory.metadata).map_err(|e| Error::Other(e.to_string()))?;
    let terms = words::index_text(&memory.content);
    let values = params![
        &memory.id,
        owner,
        memory.scope.as_str(),
        &memory.agent,
        &memory.session,
        &memory.key,
        &memory.kind,
        &memory.content,
        &metadata,
        terms.as_deref(),
        memory.created_at,
        memory.updated_at,
    ];
    let stored = tx.query_one(SQL, values, |row| Ok((row.int(0)?, MemoryId::new(row.text(1)?))))?;
    let (seq, id) = stored.ok_or_else(|| Error::Other("a memory was not stored".into()))?;
    Ok(MemoryUpsert { seq, id, owner, replaced: known.is_some() })
}

/// Returns the owner of a memory, creating it if needed.
fn ensure_owner(tx: &mut Tx<'_>, memory: &MemoryEntry) -> Result<i64> {
    const FIND_OWNER: &str =
        "SELECT id FROM memory_scopes WHERE scope = $1 AND agent_id = $2 AND session_key = $3";
    const INSERT_OWNER: &str =
        "INSERT INTO memory_scopes (scope, agent_id, session_key) VALUES ($1, $2, $3) RETURNING id";
    let session = if memory.scope == MemoryScope::Session { memory.session.as_str() } else { "" };
    let values = params![memory.scope.as_str(), &memory.agent, session];
    if let Some(known) = tx.query_one(FIND_OWNER, values, |row| row.int(0))? {
        return Ok(known);
    }
    let made = tx.query_one(INSERT_OWNER, values, |row| row.int(0))?;
    made.ok_or_else(|| Error::Other("an owner was not stored".into()))
}

macro_rules! columns {
    () => {
        "m.seq, m.id, m.agent_id, m.session_key, m.scope, m.key, m.kind, m.content, m.metadata, m.created_at, \
         m.updated_at"
    };
}

/// Visibility of the rows of an owner `o`: $1 agent, $2 session, $3 sees memories shared by others, $4 sees memories
/// outside its session.
macro_rules! seen {
    () => {
        "((o.scope = 'shared' AND ($3 = 1 OR ($4 = 1 AND o.agent_id = $1)))
          OR (o.scope = 'agent' AND $4 = 1 AND o.agent_id = $1)
          OR (o.scope = 'session' AND o.agent_id = $1 AND o.session_key = $2))"
    };
}

struct VisibilityFilter<'a> {
    agent: &'a AgentId,
    session: &'a SessionKey,
    sees_shared: bool,
    sees_agent: bool,
}

impl<'a> From<&'a MemoryViewer> for VisibilityFilter<'a> {
    fn from(viewer: &'a MemoryViewer) -> Self {
        Self {
            agent: &viewer.agent,
            session: &viewer.session,
            sees_shared: viewer.scope == MemoryScope::Shared,
            sees_agent: viewer.scope != MemoryScope::Session,
        }
    }
}

/// An owner of memories, and how many it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOwnerCount {
    pub owner: i64,
    pub memories: i64,
}

/// Lists the owners whose memories a viewer may see. All searches are restricted to these.
pub fn list_visible_owners(tx: &mut Tx<'_>, viewer: &MemoryViewer) -> Result<Vec<MemoryOwnerCount>> {
    const SQL: &str =
        concat!("SELECT o.id, o.memories FROM memory_scopes o WHERE o.memories > 0 AND ", seen!());
    let filter = VisibilityFilter::from(viewer);
    let read = |row: &Row<'_>| Ok(MemoryOwnerCount { owner: row.int(0)?, memories: row.int(1)? });
    tx.query(SQL, params![filter.agent, filter.session, filter.sees_shared, filter.sees_agent], read)
}

/// Lists all owners, for the operator.
pub fn list_owners(tx: &mut Tx<'_>) -> Result<Vec<MemoryOwnerCount>> {
    const SQL: &str = "SELECT id, memories FROM memory_scopes WHERE memories > 0";
    tx.query(SQL, &[], |row| Ok(MemoryOwnerCount { owner: row.int(0)?, memories: row.int(1)? }))
}

/// Returns the memories with these numbers that a viewer may see and has asked for. This is the final check, however
/// they were found.
pub fn fetch_visible(
    tx: &mut Tx<'_>,
    viewer: &MemoryViewer,
    seqs: &[MemorySeq],
) -> Result<Vec<(MemorySeq, MemoryEntry)>> {
    const SQL: &str = concat!(
        "SELECT ",
        columns!(),
        " FROM memories m JOIN memory_scopes o ON o.id = m.owner
         WHERE m.seq IN (SELECT value FROM json_each($5)) AND ",
        seen!(),
        "
           AND ($6 = '[]' OR m.kind IN (SELECT value FROM json_each($6)))"
    );
    let filter = VisibilityFilter::from(viewer);
    let (seqs, kinds) = (encode_json(&seqs)?, encode_json(&viewer.kinds)?);
    tx.query(
        SQL,
        params![filter.agent, filter.session, filter.sees_shared, filter.sees_agent, &seqs, &kinds],
        |row| Ok((row.int(0)?, memory_from_row(row)?)),
    )
}

/// Like `fetch_visible`, for the operator, who sees everything.
pub fn fetch_all(tx: &mut Tx<'_>, seqs: &[MemorySeq]) -> Result<Vec<(MemorySeq, MemoryEntry)>> {
    const SQL: &str =
        concat!("SELECT ", columns!(), " FROM memories m WHERE m.seq IN (SELECT value FROM json_each($1))");
    tx.query(SQL, params![&encode_json(&seqs)?], |row| Ok((row.int(0)?, memory_from_row(row)?)))
}

fn encode_json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::Other(e.to_string()))
}

/// A filter for an operator's listing.
#[derive(Clone, Debug, Default)]
pub struct MemoryListFilter {
    pub agent: Option<AgentId>,
    pub session: Option<SessionKey>,
    pub scope: Option<MemoryScope>,
    pub kind: Option<String>,
    /// Paging cursor: memories after this one in the list's order.
    pub after: Option<(Millis, String)>,
    pub limit: usize,
}

/// Lists memories, oldest change first, so that pages stay stable while memories are added.
pub fn list(tx: &mut Tx<'_>, filter: &MemoryListFilter) -> Result<Vec<MemoryEntry>> {
    const SQL: &str = concat!(
        "SELECT ",
        columns!(),
        " FROM memories m
         WHERE (m.updated_at, m.id) > ($1, $2) AND ($3 IS NULL OR m.agent_id = $3)
           AND ($4 IS NULL OR m.session_key = $4) AND ($5 IS NULL OR m.scope = $5)
           AND ($6 IS NULL OR m.kind = $6)
         ORDER BY m.updated_at, m.id LIMIT $7"
    );
    let (at, id) = filter.after.clone().unwrap_or((Millis(i64::MIN), String::new()));
    let scope = filter.scope.map(MemoryScope::as_str);
    let values = params![
        at,
        &id,
        filter.agent.as_ref(),
        filter.session.as_ref(),
        scope,
        filter.kind.as_deref(),
        filter.limit
    ];
    tx.query(SQL, values, memory_from_row)
}

pub fn get(tx: &mut Tx<'_>, id: &MemoryId) -> Result<Option<MemoryEntry>> {
    const SQL: &str = concat!("SELECT ", columns!(), " FROM memories m WHERE m.id = $1");
    tx.query_one(SQL, params![id], memory_from_row)
}

/// Removes one memory with its search terms and its vector.
pub fn delete(tx: &mut Tx<'_>, id: &MemoryId) -> Result<Option<MemorySeq>> {
    const SQL: &str = "DELETE FROM memories WHERE id = $1 RETURNING seq";
    tx.query_one(SQL, params![id], |row| row.int(0))
}

/// Removes memories that an agent stored itself and may see, never those that another agent shares with it.
pub fn delete_by_author(tx: &mut Tx<'_>, viewer: &MemoryViewer, name: &str) -> Result<Vec<MemorySeq>> {
    const SQL: &str = concat!(
        "DELETE FROM memories WHERE (id = $5 OR key = $5) AND agent_id = $1 AND owner IN
           (SELECT o.id FROM memory_scopes o WHERE ",
        seen!(),
        ") RETURNING seq"
    );
    let filter = VisibilityFilter::from(viewer);
    tx.query(SQL, params![filter.agent, filter.session, filter.sees_shared, filter.sees_agent, name], |row| {
        row.int(0)
    })
}

/// Removes all memories of an agent or a session; at least one of them must be given.
pub fn delete_all(
    tx: &mut Tx<'_>,
    agent: Option<&AgentId>,
    session: Option<&SessionKey>,
    scope: Option<MemoryScope>,
) -> Result<Vec<MemorySeq>> {
    const SQL: &str =
        "DELETE FROM memories WHERE ($1 IS NULL OR agent_id = $1) AND ($2 IS NULL OR session_key = $2)
          AND ($3 IS NULL OR scope = $3) AND ($1 IS NOT NULL OR $2 IS NOT NULL) RETURNING seq";
    tx.query(SQL, params![agent, session, scope.map(MemoryScope::as_str)], |row| row.int(0))
}

/// Numbers of memories, of those waiting for a vector, and of those with a vector of one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryCounts {
    pub memories: i64,
    pub pending: i64,
    pub embedded: i64,
}

pub fn get_counts(tx: &mut Tx<'_>, model: Option<&str>) -> Result<MemoryCounts> {
    const SQL: &str = "SELECT (SELECT COUNT(*) FROM memories), (SELECT COUNT(*) FROM embedding_queue),
        (SELECT COUNT(*) FROM vectors WHERE model_id = $1)";
    let read = |row: &Row<'_>| {
        Ok(MemoryCounts { memories: row.int(0)?, pending: row.int(1)?, embedded: row.int(2)? })
    };
    Ok(tx.query_one(SQL, params![model], read)?.unwrap_or_default())
}

fn memory_from_row(row: &Row<'_>) -> Result<MemoryEntry> {
    Ok(MemoryEntry {
        id: MemoryId::new(row.text(1)?),
        agent: row.agent_id(2)?,
        session: row.session_key(3)?,
        scope: row.parse_column(4, MemoryScope::parse)?,
        key: row.text(5)?,
        kind: row.text(6)?,
        content: row.text(7)?,
        metadata: serde_json::from_str(&row.text(8)?).map_err(|e| Error::Corrupt(e.to_string()))?,
        created_at: row.time(9)?,
        updated_at: row.time(10)?,
    })
}
