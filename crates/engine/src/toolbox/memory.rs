//! `memory_store`, `memory_search`, `memory_forget`: group `memory`. An agent with memory disabled has none of them.

use std::sync::Arc;

use polyclaw_domain::agent::MemoryScope;
use polyclaw_domain::authority::Authority;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::memory::{MemoryEntry, MemoryViewer, default_scope};
use polyclaw_domain::port::BoxFuture;
use polyclaw_domain::tool::{
    ProgressSink, ToolCall, ToolConsent, ToolEffect, ToolOutcome, ToolRisk, ToolScope, ToolSpec, Toolbox,
    arguments,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::memory::{MemorySearch, MemoryStore};

/// Default number of memories in one result.
const DEFAULT_SEARCH_RESULTS: usize = 5;
const MAX_SEARCH_RESULTS: usize = 20;

pub struct MemoryToolbox {
    memory_store: Arc<MemoryStore>,
    specs: [Arc<ToolSpec>; 3],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemoryStoreArguments {
    content: String,
    key: Option<String>,
    kind: Option<String>,
    scope: Option<MemoryScope>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemorySearchArguments {
    query: String,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemoryForgetArguments {
    id: String,
}

impl MemoryToolbox {
    pub fn new(memory_store: Arc<MemoryStore>) -> Self {
        Self { memory_store, specs: [store_spec(), find_spec(), forget_spec()].map(Arc::new) }
    }

    async fn store_memory(&self, scope: &ToolScope, wanted: MemoryStoreArguments) -> Result<String> {
        let (viewer, policy) = (memory_viewer(scope), widest_scope(scope));
        let given = match wanted.scope {
            Some(named) => named.narrower_of(policy),
            None => default_scope(policy, &scope.session),
        };
        let memory = MemoryEntry {
            key: wanted.key.unwrap_or_default(),
            metadata: wanted.metadata,
            ..self.memory_store.new_memory(&viewer, given, wanted.content)
        };
        let kind = wanted.kind.unwrap_or_else(|| memory.kind.clone());
        let stored = self.memory_store.put_memories(vec![MemoryEntry { kind, ..memory }]).await?;
        let notice = stored.iter().map(|memory| {
            json!({ "id": memory.id, "key": memory.key, "scope": memory.scope.as_str() }).to_string()
        });
        Ok(format!("Stored: {}", notice.collect::<String>()))
    }

    async fn search_memories(&self, scope: &ToolScope, wanted: MemorySearchArguments) -> Result<String> {
        let viewer = memory_viewer(scope);
        let limit = wanted.limit.unwrap_or(DEFAULT_SEARCH_RESULTS).clamp(1, MAX_SEARCH_RESULTS);
        let (found, _) = self
            .memory_store
            .search(&MemorySearch { viewer: Some(&viewer), text: &wanted.query, limit })
            .await?;
        if found.is_empty() {
            return Ok("No matching memories found.".to_owned());
        }
        let line = |memory: &MemoryEntry| {
            json!({ "id": memory.id, "key": memory.key, "kind": memory.kind, "content": memory.content,
                "updated_at": memory.updated_at })
            .to_string()
        };
        Ok(found.iter().map(|(memory, _)| line(memory)).collect::<Vec<_>>().join("\n"))
    }

    async fn forget_memory(&self, scope: &ToolScope, wanted: MemoryForgetArguments) -> Result<String> {
        let owned = MemoryViewer { scope: widest_scope(scope), ..memory_viewer(scope) };
        Ok(match self.memory_store.forget_own(&owned, &wanted.id).await? {
            0 => "No memory of yours has this ID or key.".to_owned(),
            count => format!("Memories deleted: {count}."),
        })
    }

    async fn run_tool(&self, scope: &ToolScope, call: &ToolCall) -> std::result::Result<String, String> {
        let text_of = |error: crate::error::Error| match error.hint() {
            Some(hint) => format!("{error}: {hint}."),
            None => error.to_string(),
        };
        match call.name.as_str() {
            "memory_store" => {
                self.store_memory(scope, parse_arguments(&call.arguments)?).await.map_err(text_of)
            }
            "memory_search" => {
                self.search_memories(scope, parse_arguments(&call.arguments)?).await.map_err(text_of)
            }
            "memory_forget" => {
                self.forget_memory(scope, parse_arguments(&call.arguments)?).await.map_err(text_of)
            }
            other => Err(format!("There is no tool '{other}' here.")),
        }
    }
}

impl Toolbox for MemoryToolbox {
    fn list_tools(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>> {
        if scope.memory.memory { self.specs.to_vec() } else { Vec::new() }
    }

    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        _: &'a TurnId,
        call: &'a ToolCall,
        _: ProgressSink<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            if !scope.memory.memory {
                return ToolOutcome::error("Memory is disabled for this agent.");
            }
            match self.run_tool(scope, call).await {
                Ok(text) => ToolOutcome::ok(text),
                Err(why) => ToolOutcome::error(why),
            }
        })
    }
}

/// Returns the widest scope of memories a call may change. In turns for anyone but an owner this is the session, so
/// that they cannot change what the agent knows elsewhere.
pub(crate) fn widest_scope(scope: &ToolScope) -> MemoryScope {
    if scope.authority == Authority::Owner { scope.memory.scope } else { MemoryScope::Session }
}

fn memory_viewer(scope: &ToolScope) -> MemoryViewer {
    MemoryViewer::for_session(&scope.agent, &scope.session, &scope.memory)
}

fn parse_arguments<A: DeserializeOwned>(given: &Value) -> std::result::Result<A, String> {
    arguments::parse_arguments(given).map_err(|error| format!("Invalid arguments: {error}."))
}

fn memory_tool_spec(name: &str, description: &str, effect: ToolEffect, parameters: Value) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
        effect,
        risk: ToolRisk::Low,
        consent: ToolConsent::NotNeeded,
        confined: true,
    }
}

fn store_spec() -> ToolSpec {
    let about = "Stores a fact for later conversations. Do not store secrets such as passwords.";
    memory_tool_spec(
        "memory_store",
        about,
        ToolEffect::Idempotent,
        json!({
            "type": "object",
            "properties": {
                "content": { "type": "string", "description": "One fact, as a sentence that is understandable \
                                                               without context." },
                "key": { "type": "string",
                    "description": "A unique name, such as user:timezone. A new memory with the same key replaces the old one." },
                "kind": { "type": "string", "description": "Type of memory, such as fact, preference or decision." },
                "scope": { "type": "string", "enum": ["session", "agent", "shared"],
                    "description": "Who can recall it: this conversation (session), all your conversations (agent), \
                                    or other agents too (shared)." },
                "metadata": { "type": "object", "description": "Additional structured data to store with the memory." }
            },
            "required": ["content"],
            "additionalProperties": false
        }),
    )
}

fn find_spec() -> ToolSpec {
    let about = "Searches your memories by keyword and by meaning.";
    memory_tool_spec(
        "memory_search",
        about,
        ToolEffect::Pure,
        json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "Search query: keywords or a question." },
                "limit": { "type": "integer", "minimum": 1, "maximum": MAX_SEARCH_RESULTS,
                    "description": "Maximum number of results. Default: 5." }
            },
            "required": ["query"],
            "additionalProperties": false
        }),
    )
}

fn forget_spec() -> ToolSpec {
    let about = "Deletes a memory that you stored, by its ID or key.";
    memory_tool_spec(
        "memory_forget",
        about,
        ToolEffect::Idempotent,
        json!({
            "type": "object",
            "properties": { "id": { "type": "string", "description": "ID or key of the memory." } },
            "required": ["id"],
            "additionalProperties": false
        }),
    )
}
