//! Memories of agents: list, search, store, import, forget. The operator sees all of them, or those visible to one
//! agent in one session.

use polyclaw_domain::agent::MemoryScope;
use polyclaw_domain::id::{AgentId, MemoryId};
use polyclaw_domain::memory::MemoryEntry;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

/// A memory. Embeddings are not included, because each instance computes its own.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Memory)]
pub struct MemoryView {
    /// The id of the memory.
    #[schema(value_type = String)]
    pub id: MemoryId,
    /// The agent that stored it.
    #[schema(value_type = String)]
    pub agent_id: AgentId,
    /// The session it was learned in.
    #[schema(value_type = String)]
    pub session_key: SessionKey,
    /// Who can see it: `shared` (all agents), `agent` or `session`.
    #[schema(value_type = String)]
    pub scope: MemoryScope,
    /// A key that is unique for its owner. Storing under the same key replaces the memory.
    pub key: String,
    /// The kind of memory, such as `fact`.
    pub kind: String,
    /// The remembered text.
    pub content: String,
    /// Additional data of the caller's choice.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Millis,
}

impl From<MemoryEntry> for MemoryView {
    fn from(memory: MemoryEntry) -> Self {
        Self {
            id: memory.id,
            agent_id: memory.agent,
            session_key: memory.session,
            scope: memory.scope,
            key: memory.key,
            kind: memory.kind,
            content: memory.content,
            metadata: memory.metadata,
            created_at: memory.created_at,
            updated_at: memory.updated_at,
        }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListMemoriesQuery {
    /// Search by words and meaning, best match first. If omitted, all memories are listed, least recently changed
    /// first.
    pub q: Option<String>,
    /// Only memories stored by this agent. With `q`: those this agent would find under its policy.
    #[param(value_type = Option<String>)]
    pub agent: Option<AgentId>,
    /// Only memories stored in this session. With `q`: those `agent` would find in it.
    #[param(value_type = Option<String>)]
    pub session: Option<SessionKey>,
    /// Only memories of this scope: `shared`, `agent` or `session`. Not allowed with `q`.
    #[param(value_type = Option<String>)]
    pub scope: Option<MemoryScope>,
    /// Only memories of this kind. Not allowed with `q`.
    pub kind: Option<String>,
    /// Page size. At most 1000, default 100. With `q` at most 100, default 10.
    #[param(minimum = 1)]
    pub limit: Option<usize>,
    /// `next_cursor` of the previous page. Not allowed with `q`.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct MemoryList {
    /// The memories found.
    pub memories: Vec<MemoryListItem>,
    /// Why the search compared words only, without embeddings. Null if it used them, or if nothing was searched.
    pub words_only: Option<String>,
    /// The cursor of the next page. Null on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = ListedMemory)]
pub struct MemoryListItem {
    /// The relevance; higher is better. Only with `q`, and only comparable within one response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    #[serde(flatten)]
    pub memory: MemoryView,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMemory {
    /// The text to remember.
    pub content: String,
    /// The agent that the memory belongs to. Defaults to the default agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub agent_id: Option<AgentId>,
    /// The session that the memory belongs to. Defaults to the agent's main session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub session_key: Option<SessionKey>,
    /// Who can see it: `shared`, `agent` or `session`. Defaults to `agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub scope: Option<MemoryScope>,
    /// A key that is unique for its owner. Storing under the same key replaces the memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The kind of memory. Defaults to `fact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Additional data of the caller's choice.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryImport {
    /// The memories to import, at most 1000.
    #[schema(value_type = Vec<MemoryView>)]
    pub memories: Vec<ImportedMemory>,
}

/// A memory to import: the fields of [`MemoryView`], and no others.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ImportedMemory {
    pub id: MemoryId,
    pub agent_id: AgentId,
    pub session_key: SessionKey,
    pub scope: MemoryScope,
    pub key: String,
    pub kind: String,
    pub content: String,
    #[serde(default)]
    pub metadata: Map<String, Value>,
    pub created_at: Millis,
    pub updated_at: Millis,
}

impl From<ImportedMemory> for MemoryEntry {
    fn from(memory: ImportedMemory) -> Self {
        Self {
            id: memory.id,
            agent: memory.agent_id,
            session: memory.session_key,
            scope: memory.scope,
            key: memory.key,
            kind: memory.kind,
            content: memory.content,
            metadata: memory.metadata,
            created_at: memory.created_at,
            updated_at: memory.updated_at,
        }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct MemoryImportResult {
    /// The number of imported memories.
    pub stored: usize,
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MemoryOwnerQuery {
    /// Only memories stored by this agent.
    #[param(value_type = Option<String>)]
    pub agent: Option<AgentId>,
    /// Only memories stored in this session.
    #[param(value_type = Option<String>)]
    pub session: Option<SessionKey>,
    /// Only memories of this scope: `shared`, `agent` or `session`.
    #[param(value_type = Option<String>)]
    pub scope: Option<MemoryScope>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ForgetResult {
    /// The number of forgotten memories.
    pub forgotten: usize,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct MemoryStatus {
    /// The number of memories.
    pub memories: i64,
    /// Memories that have no embedding of the current model yet.
    pub pending: i64,
    /// The model that computes embeddings. Null if search uses words only.
    pub embeddings: Option<String>,
    /// Why the embedding model failed at its last use.
    pub error: Option<String>,
    /// Bytes of embeddings held in memory.
    pub cached_bytes: usize,
}
