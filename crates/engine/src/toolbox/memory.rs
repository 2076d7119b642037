//! `memory_store`, `memory_search`, `memory_forget`: group `memory`. An agent that is not to remember has none of them.

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
use crate::memory::{Brain, Search};

/// Memories of one answer, where the model does not say.
const FOUND: usize = 5;
const MOST_FOUND: usize = 20;

pub struct Memories {
    brain: Arc<Brain>,
    specs: [Arc<ToolSpec>; 3],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Store {
    content: String,
    key: Option<String>,
    kind: Option<String>,
    scope: Option<MemoryScope>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Find {
    query: String,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Forget {
    id: String,
}

impl Memories {
    pub fn new(brain: Arc<Brain>) -> Self {
        Self { brain, specs: [store_spec(), find_spec(), forget_spec()].map(Arc::new) }
    }

    async fn store(&self, scope: &ToolScope, wanted: Store) -> Result<String> {
        let (viewer, policy) = (viewer(scope), widest_scope(scope));
        let given = match wanted.scope {
            Some(named) => named.narrower_of(policy),
            None => default_scope(policy, &scope.session),
        };
        let memory = MemoryEntry {
            key: wanted.key.unwrap_or_default(),
            metadata: wanted.metadata,
            ..self.brain.draft(&viewer, given, wanted.content)
        };
        let kind = wanted.kind.unwrap_or_else(|| memory.kind.clone());
        let stored = self.brain.put(vec![MemoryEntry { kind, ..memory }]).await?;
        let told = stored.iter().map(|memory| {
            json!({ "id": memory.id, "key": memory.key, "scope": memory.scope.as_str() }).to_string()
        });
        Ok(format!("Remembered: {}", told.collect::<String>()))
    }

    async fn find(&self, scope: &ToolScope, wanted: Find) -> Result<String> {
        let viewer = viewer(scope);
        let limit = wanted.limit.unwrap_or(FOUND).clamp(1, MOST_FOUND);
        let (found, _) =
            self.brain.search(&Search { viewer: Some(&viewer), text: &wanted.query, limit }).await?;
        if found.is_empty() {
            return Ok("Nothing is remembered about that.".to_owned());
        }
        let line = |memory: &MemoryEntry| {
            json!({ "id": memory.id, "key": memory.key, "kind": memory.kind, "content": memory.content,
                "updated_at": memory.updated_at })
            .to_string()
        };
        Ok(found.iter().map(|(memory, _)| line(memory)).collect::<Vec<_>>().join("\n"))
    }

    async fn forget(&self, scope: &ToolScope, wanted: Forget) -> Result<String> {
        let owned = MemoryViewer { scope: widest_scope(scope), ..viewer(scope) };
        Ok(match self.brain.forget_own(&owned, &wanted.id).await? {
            0 => "Nothing of yours has that id or key.".to_owned(),
            count => format!("Forgotten: {count}."),
        })
    }

    async fn perform(&self, scope: &ToolScope, call: &ToolCall) -> std::result::Result<String, String> {
        let told = |error: crate::error::Error| match error.hint() {
            Some(hint) => format!("{error}: {hint}."),
            None => error.to_string(),
        };
        match call.name.as_str() {
            "memory_store" => self.store(scope, read(&call.arguments)?).await.map_err(told),
            "memory_search" => self.find(scope, read(&call.arguments)?).await.map_err(told),
            "memory_forget" => self.forget(scope, read(&call.arguments)?).await.map_err(told),
            other => Err(format!("There is no tool '{other}' here.")),
        }
    }
}

impl Toolbox for Memories {
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
                return ToolOutcome::error("This agent does not remember.");
            }
            match self.perform(scope, call).await {
                Ok(said) => ToolOutcome::ok(said),
                Err(why) => ToolOutcome::error(why),
            }
        })
    }
}

/// What others but an owner have an agent remember or forget stays in their conversation: what it knows elsewhere is
/// not theirs to change.
pub(crate) fn widest_scope(scope: &ToolScope) -> MemoryScope {
    if scope.authority == Authority::Owner { scope.memory.scope } else { MemoryScope::Session }
}

fn viewer(scope: &ToolScope) -> MemoryViewer {
    MemoryViewer::for_session(&scope.agent, &scope.session, &scope.memory)
}

fn read<A: DeserializeOwned>(given: &Value) -> std::result::Result<A, String> {
    arguments::parse_arguments(given).map_err(|error| format!("The arguments do not fit: {error}."))
}

fn spec(name: &str, description: &str, effect: ToolEffect, parameters: Value) -> ToolSpec {
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
    let about = "Remember a fact beyond this conversation. Not for secrets such as passwords.";
    spec(
        "memory_store",
        about,
        ToolEffect::Idempotent,
        json!({
            "type": "object",
            "properties": {
                "content": { "type": "string", "description": "One fact, as a sentence that can be understood alone." },
                "key": { "type": "string", "description": "A name such as user:timezone; storing under the same key replaces." },
                "kind": { "type": "string", "description": "What it is, such as fact, preference or decision." },
                "scope": { "type": "string", "enum": ["session", "agent", "shared"],
                    "description": "Who can recall it: this conversation, all of yours, or other agents too." },
                "metadata": { "type": "object", "description": "Anything else worth keeping with it." }
            },
            "required": ["content"],
            "additionalProperties": false
        }),
    )
}

fn find_spec() -> ToolSpec {
    let about = "Search what you remember, by words and by meaning.";
    spec(
        "memory_search",
        about,
        ToolEffect::Pure,
        json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "What to look for, in words or as a question." },
                "limit": { "type": "integer", "minimum": 1, "maximum": MOST_FOUND, "description": "At most so many; 5 if left out." }
            },
            "required": ["query"],
            "additionalProperties": false
        }),
    )
}

fn forget_spec() -> ToolSpec {
    let about = "Forget something you stored, by its id or key.";
    spec(
        "memory_forget",
        about,
        ToolEffect::Idempotent,
        json!({
            "type": "object",
            "properties": { "id": { "type": "string", "description": "The id or key of the memory." } },
            "required": ["id"],
            "additionalProperties": false
        }),
    )
}
