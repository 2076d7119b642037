//! The memory store: memories in their own database file, found by keyword and by meaning. The file is opened on first
//! use and created by the first memory, so that an instance without memories pays nothing.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use polyclaw_domain::agent::MemoryScope;
use polyclaw_domain::embedding::Embedder;
use polyclaw_domain::id::{AgentId, MemoryId};
use polyclaw_domain::memory::{MemoryEntry, MemoryViewer};
use polyclaw_domain::port::{IdGenerator, WallClock};
use polyclaw_domain::recall::MemorySeq;
use polyclaw_domain::redact::Redactor;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::memory::{self, MemoryCounts, MemoryListFilter};
use polyclaw_store::{Db, Tx};
use tokio::sync::{Notify, OnceCell};

use crate::error::{Error, Result};

mod embed;
mod flush;
mod recall;
mod turn;
mod vectors;

pub(crate) use embed::run_embed_loop;
pub use recall::{MemorySearch, RecalledMemories};
pub(crate) use turn::RecalledText;
pub use vectors::VectorIndex;

/// The count has not been read from the database yet.
const UNKNOWN_COUNT: i64 = -1;

/// Location of the memory database.
pub enum MemoryLocation {
    File(PathBuf),
    /// An open database, used by the simulator.
    Open(Db),
}

pub struct MemoryStore {
    location: MemoryLocation,
    db: OnceCell<Db>,
    clock: Arc<dyn WallClock>,
    ids: Arc<dyn IdGenerator>,
    count: AtomicI64,
    embedder: RwLock<Option<Arc<dyn Embedder>>>,
    redactor: RwLock<Arc<Redactor>>,
    vectors: Arc<VectorIndex>,
    /// A memory needs an embedding, or the embedder changed.
    wake: Notify,
    /// The embedder changed, so the last failure is no reason to wait.
    replaced: Notify,
    /// The embedder's last error.
    failure: Mutex<Option<String>>,
}

/// Status of the memory store, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryStoreStatus {
    pub memories: i64,
    /// Memories without an embedding of the current model.
    pub pending: i64,
    /// The embedding model. Without one, memories are found by keyword only.
    pub model: Option<String>,
    /// The embedder's last error. Embedding is retried every minute.
    pub error: Option<String>,
    /// Bytes of cached embeddings.
    pub cached_bytes: usize,
}

impl MemoryStore {
    pub fn new(
        location: MemoryLocation,
        clock: Arc<dyn WallClock>,
        ids: Arc<dyn IdGenerator>,
        vectors: VectorIndex,
    ) -> Self {
        let count = match &location {
            MemoryLocation::File(path) if !path.exists() => 0,
            _ => UNKNOWN_COUNT,
        };
        Self {
            location,
            db: OnceCell::new(),
            clock,
            ids,
            count: count.into(),
            embedder: RwLock::default(),
            redactor: RwLock::default(),
            vectors: Arc::new(vectors),
            wake: Notify::new(),
            replaced: Notify::new(),
            failure: Mutex::default(),
        }
    }

    /// Sets the embedder; `None` searches by keyword only.
    pub fn set_embedder(&self, embedder: Option<Arc<dyn Embedder>>) {
        *self.embedder.write().unwrap_or_else(PoisonError::into_inner) = embedder;
        self.note_failure(None);
        self.replaced.notify_one();
        self.wake.notify_one();
    }

    /// Sets the redactor that removes secrets from memories.
    pub(crate) fn set_redactor(&self, redactor: Arc<Redactor>) {
        *self.redactor.write().unwrap_or_else(PoisonError::into_inner) = redactor;
    }

    fn redact_memory(&self, mut memory: MemoryEntry) -> MemoryEntry {
        let redactor = Arc::clone(&self.redactor.read().unwrap_or_else(PoisonError::into_inner));
        redactor.redact_in_place(&mut memory.content);
        redactor.redact_in_place(&mut memory.key);
        memory.metadata.values_mut().for_each(|value| redactor.redact_json(value));
        memory
    }

    fn note_failure(&self, why: Option<String>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    pub fn has_embedder(&self) -> bool {
        self.embedder().is_some()
    }

    fn embedder(&self) -> Option<Arc<dyn Embedder>> {
        self.embedder.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether there are no memories, without opening the file.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Checkpoints the database into a single file if it was opened.
    pub fn checkpoint(&self) -> Result<()> {
        Ok(self.db.get().map_or(Ok(()), Db::checkpoint_all)?)
    }

    async fn db(&self) -> Result<&Db> {
        let open = async {
            let db = match &self.location {
                MemoryLocation::Open(db) => db.clone(),
                MemoryLocation::File(path) => {
                    let path = path.clone();
                    let opened = tokio::task::spawn_blocking(move || Db::open_memory_db(&path)).await;
                    opened.map_err(|_| polyclaw_store::Error::Closed)??
                }
            };
            let counts = db.read(|tx| memory::get_counts(tx, None)).await?;
            self.count.store(counts.memories, Ordering::Relaxed);
            Ok::<_, Error>(db)
        };
        self.db.get_or_try_init(|| open).await
    }

    /// Reads without creating the file: returns `empty` if there is none.
    async fn read<T, F>(&self, empty: T, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> polyclaw_store::Result<T> + Send + 'static,
    {
        if self.is_empty() && self.db.get().is_none() {
            return Ok(empty);
        }
        Ok(self.db().await?.read(body).await?)
    }

    /// Stores memories in one transaction and returns them as stored.
    pub async fn put_memories(&self, memories: Vec<MemoryEntry>) -> Result<Vec<MemoryEntry>> {
        let clean = memories.into_iter().map(|memory| self.redact_memory(memory));
        let memories: Vec<MemoryEntry> = clean.map(validate_memory).collect::<Result<_>>()?;
        let write = move |tx: &mut Tx<'_>| memories.iter().map(|memory| put_memory(tx, memory)).collect();
        let stored: Vec<(memory::MemoryUpsert, MemoryEntry)> = self.db().await?.write(write).await?;
        let new = stored.iter().filter(|(put, _)| !put.replaced).count();
        self.count.fetch_add(i64::try_from(new).unwrap_or(0), Ordering::Relaxed);
        self.vectors.remove_vectors(
            &stored.iter().filter(|(put, _)| put.replaced).map(|(put, _)| put.seq).collect::<Vec<_>>(),
        );
        self.wake.notify_one();
        Ok(stored.into_iter().map(|(put, memory)| MemoryEntry { id: put.id, ..memory }).collect())
    }

    /// Builds a new memory of an agent, dated now.
    pub fn new_memory(&self, viewer: &MemoryViewer, scope: MemoryScope, content: String) -> MemoryEntry {
        let now = self.clock.now();
        MemoryEntry {
            id: MemoryId::new(self.ids.next_id()),
            agent: viewer.agent.clone(),
            session: viewer.session.clone(),
            scope,
            key: String::new(),
            kind: polyclaw_domain::memory::DEFAULT_MEMORY_KIND.to_owned(),
            content,
            metadata: serde_json::Map::new(),
            created_at: now,
            updated_at: now,
        }
    }

    pub async fn list(&self, filter: MemoryListFilter) -> Result<Vec<MemoryEntry>> {
        self.read(Vec::new(), move |tx| memory::list(tx, &filter)).await
    }

    pub async fn get(&self, id: &MemoryId) -> Result<MemoryEntry> {
        let wanted = id.clone();
        let found = self.read(None, move |tx| memory::get(tx, &wanted)).await?;
        found.ok_or_else(|| Error::UnknownMemory(id.to_string()))
    }

    /// Deletes one memory of any owner, for the operator.
    pub async fn forget_memory(&self, id: &MemoryId) -> Result<()> {
        let wanted = id.clone();
        let gone =
            self.delete_where(move |tx| Ok(memory::delete(tx, &wanted)?.into_iter().collect())).await?;
        if gone == 0 { Err(Error::UnknownMemory(id.to_string())) } else { Ok(()) }
    }

    /// Deletes memories that an agent stored itself, by id or key.
    pub async fn forget_own(&self, viewer: &MemoryViewer, name: &str) -> Result<usize> {
        let (viewer, name) = (viewer.clone(), name.to_owned());
        self.delete_where(move |tx| memory::delete_by_author(tx, &viewer, &name)).await
    }

    /// Deletes all memories of an agent or a session, optionally only those of one scope.
    pub async fn forget_all(
        &self,
        agent: Option<AgentId>,
        session: Option<SessionKey>,
        scope: Option<MemoryScope>,
    ) -> Result<usize> {
        self.delete_where(move |tx| memory::delete_all(tx, agent.as_ref(), session.as_ref(), scope)).await
    }

    async fn delete_where<F>(&self, body: F) -> Result<usize>
    where
        F: FnMut(&mut Tx<'_>) -> polyclaw_store::Result<Vec<MemorySeq>> + Send + 'static,
    {
        if self.is_empty() && self.db.get().is_none() {
            return Ok(0);
        }
        let gone = self.db().await?.write(body).await?;
        self.count.fetch_sub(i64::try_from(gone.len()).unwrap_or(0), Ordering::Relaxed);
        self.vectors.remove_vectors(&gone);
        Ok(gone.len())
    }

    pub async fn status(&self) -> Result<MemoryStoreStatus> {
        let model = self.embedder().map(|embedder| embedder.model_id().to_owned());
        let wanted = model.clone();
        let counts =
            self.read(MemoryCounts::default(), move |tx| memory::get_counts(tx, wanted.as_deref())).await?;
        let pending = counts.memories - counts.embedded;
        let error = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(MemoryStoreStatus {
            memories: counts.memories,
            pending,
            model,
            error,
            cached_bytes: self.vectors.cached_bytes(),
        })
    }
}

/// Checks every memory before it is stored, whether it comes from a model, the API, a file or a compacted history.
fn validate_memory(mut memory: MemoryEntry) -> Result<MemoryEntry> {
    if memory.key.is_empty() {
        memory.key = polyclaw_domain::memory::derived_key("note", &memory.content);
    }
    memory.validate_limits()?;
    Ok(memory)
}

/// Stores a memory. If its id belongs to another owner's memory, it gets an id of its own.
fn put_memory(
    tx: &mut Tx<'_>,
    memory: &MemoryEntry,
) -> polyclaw_store::Result<(memory::MemoryUpsert, MemoryEntry)> {
    let mut memory = memory.clone();
    let taken = memory::get(tx, &memory.id)?.is_some_and(|known| !is_same(&known, &memory));
    if taken {
        memory.id = MemoryId::new(format!("{}-{}-{}", memory.id, memory.scope.as_str(), memory.agent));
    }
    Ok((memory::upsert(tx, &memory)?, memory))
}

fn is_same(a: &MemoryEntry, b: &MemoryEntry) -> bool {
    let place = a.scope != MemoryScope::Session || a.session == b.session;
    a.agent == b.agent && a.scope == b.scope && a.key == b.key && place
}
