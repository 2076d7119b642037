//! Memories of agents: list, search, store, import, forget. The operator sees all of them, or those visible to one
//! agent in one session.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polyclaw_api::memory::{
    ForgetResult, ListMemoriesQuery, MemoryImport, MemoryImportResult, MemoryList, MemoryListItem,
    MemoryOwnerQuery, MemoryStatus, MemoryView, NewMemory,
};
use polyclaw_domain::id::{AgentId, MemoryId};
use polyclaw_domain::memory::{MemoryEntry, MemoryViewer};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_engine::memory::MemorySearch;
use polyclaw_store::memory::MemoryListFilter;

use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathId, QueryParams};
use crate::paging::{PagePosition, PageRequest, page_size};
use crate::state::AppState;

/// The number of results of a search.
const MAX_SEARCH_RESULTS: usize = 100;
/// The number of memories per import.
const MAX_IMPORTED_MEMORIES: usize = 1000;

/// Lists or searches memories.
#[utoipa::path(get, path = "/memory", tag = "memory", params(ListMemoriesQuery), responses((status = 200, body = MemoryList)))]
pub async fn list_memories(
    State(app): State<AppState>,
    QueryParams(which): QueryParams<ListMemoriesQuery>,
) -> Result<Json<MemoryList>> {
    if let Some(words) = &which.q {
        return search_memories(&app, words, &which).await;
    }
    let paging = PageRequest::from_query("memory", which.limit, which.cursor.as_deref())?;
    let filter = MemoryListFilter {
        agent: which.agent,
        session: which.session,
        scope: which.scope,
        kind: which.kind,
        after: paging.after.clone().map(|place| (Millis(place.at), place.id)),
        limit: paging.row_limit(),
    };
    let mut found = app.engine.memory_store().list(filter).await?;
    let place = |memory: &MemoryEntry| PagePosition { at: memory.updated_at.0, id: memory.id.to_string() };
    let next_cursor = paging.cut_page(&mut found, place);
    let memories =
        found.into_iter().map(|memory| MemoryListItem { score: None, memory: memory.into() }).collect();
    Ok(Json(MemoryList { memories, words_only: None, next_cursor }))
}

/// Stores a memory for an agent.
#[utoipa::path(post, path = "/memory", tag = "memory", request_body = NewMemory, responses((status = 201, body = MemoryView)))]
pub async fn store_memory(
    State(app): State<AppState>,
    JsonBody(new): JsonBody<NewMemory>,
) -> Result<(StatusCode, Json<MemoryView>)> {
    let agent = new.agent_id.unwrap_or_else(|| app.engine.settings().default_agent.clone());
    let viewer = memory_viewer(&app, agent, new.session_key).await?;
    let draft = app.engine.memory_store().new_memory(&viewer, new.scope.unwrap_or_default(), new.content);
    let memory = MemoryEntry {
        key: new.key.unwrap_or_default(),
        kind: new.kind.unwrap_or_else(|| draft.kind.clone()),
        metadata: new.metadata,
        ..draft
    };
    let stored = app.engine.memory_store().put_memories(vec![memory]).await?.into_iter().next();
    let stored = stored.ok_or(Error::Panicked)?;
    Ok((StatusCode::CREATED, Json(stored.into())))
}

async fn search_memories(app: &AppState, words: &str, which: &ListMemoriesQuery) -> Result<Json<MemoryList>> {
    if which.scope.is_some() || which.kind.is_some() || which.cursor.is_some() {
        return Err(Error::invalid_field("q", "can be combined only with agent, session and limit"));
    }
    let viewer = match (&which.agent, &which.session) {
        (Some(agent), session) => Some(memory_viewer(app, agent.clone(), session.clone()).await?),
        (None, None) => None,
        (None, Some(_)) => return Err(Error::invalid_field("session", "also needs agent")),
    };
    let limit = page_size(which.limit, 10)?.min(MAX_SEARCH_RESULTS);
    let search = MemorySearch { viewer: viewer.as_ref(), text: words, limit };
    let (found, words_only) = app.engine.memory_store().search(&search).await?;
    let words_only = words_only.map(str::to_owned);
    let listed =
        |(memory, score): (MemoryEntry, f64)| MemoryListItem { score: Some(score), memory: memory.into() };
    Ok(Json(MemoryList { memories: found.into_iter().map(listed).collect(), words_only, next_cursor: None }))
}

async fn memory_viewer(app: &AppState, agent: AgentId, session: Option<SessionKey>) -> Result<MemoryViewer> {
    let spec = app.engine.load_agent(&agent).await?.spec;
    let session = session.unwrap_or_else(|| SessionKey::main(&agent));
    Ok(MemoryViewer::for_session(&agent, &session, &spec.context_policy))
}

/// Imports memories in the format of the list.
/// A memory with the same owner and key is replaced.
#[utoipa::path(post, path = "/memory/import", tag = "memory", request_body = MemoryImport, responses((status = 200, body = MemoryImportResult)))]
pub async fn import_memories(
    State(app): State<AppState>,
    JsonBody(import): JsonBody<MemoryImport>,
) -> Result<Json<MemoryImportResult>> {
    if import.memories.len() > MAX_IMPORTED_MEMORIES {
        return Err(Error::InvalidBody(format!(
            "at most {MAX_IMPORTED_MEMORIES} memories are allowed in one call"
        )));
    }
    let memories: Vec<MemoryEntry> = import.memories.into_iter().map(MemoryEntry::from).collect();
    let stored = app.engine.memory_store().put_memories(memories).await?.len();
    Ok(Json(MemoryImportResult { stored }))
}

/// Returns a memory.
#[utoipa::path(get, path = "/memory/{id}", tag = "memory", params(("id" = String, Path)), responses((status = 200, body = MemoryView)))]
pub async fn show_memory(State(app): State<AppState>, PathId(id): PathId) -> Result<Json<MemoryView>> {
    Ok(Json(app.engine.memory_store().get(&MemoryId::new(id)).await?.into()))
}

/// Forgets a memory.
#[utoipa::path(delete, path = "/memory/{id}", tag = "memory", params(("id" = String, Path)), responses((status = 204)))]
pub async fn forget_memory(State(app): State<AppState>, PathId(id): PathId) -> Result<StatusCode> {
    app.engine.memory_store().forget_memory(&MemoryId::new(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Forgets all memories of an agent or a session.
#[utoipa::path(delete, path = "/memory", tag = "memory", params(MemoryOwnerQuery), responses((status = 200, body = ForgetResult)))]
pub async fn forget_memories(
    State(app): State<AppState>,
    QueryParams(whose): QueryParams<MemoryOwnerQuery>,
) -> Result<Json<ForgetResult>> {
    if whose.agent.is_none() && whose.session.is_none() {
        return Err(Error::invalid_field("query", "agent or session is required"));
    }
    let forgotten = app.engine.memory_store().forget_all(whose.agent, whose.session, whose.scope).await?;
    Ok(Json(ForgetResult { forgotten }))
}

/// Returns the number of memories and the state of the search index.
#[utoipa::path(get, path = "/memory/status", tag = "memory", responses((status = 200, body = MemoryStatus)))]
pub async fn memory_status(State(app): State<AppState>) -> Result<Json<MemoryStatus>> {
    let job_status = app.engine.memory_store().status().await?;
    Ok(Json(MemoryStatus {
        memories: job_status.memories,
        pending: job_status.pending,
        embeddings: job_status.model,
        error: job_status.error,
        cached_bytes: job_status.cached_bytes,
    }))
}
