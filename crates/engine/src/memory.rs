//! The brain: memories in a file of their own, found by their words and by what they mean. The file is opened when it
//! is first needed and made by the first memory: an instance that remembers nothing pays nothing.

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

/// Nobody has looked yet.
const UNKNOWN_COUNT: i64 = -1;

/// Where memories lie.
pub enum MemoryLocation {
    File(PathBuf),
    /// Open already: the simulator's.
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
    /// A memory waits for its vector, or another model makes them.
    wake: Notify,
    /// Another model makes them: what the last one failed at is no reason to wait.
    replaced: Notify,
    /// Why the model made no vectors when it was last asked.
    failure: Mutex<Option<String>>,
}

/// How it stands, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryStoreStatus {
    pub memories: i64,
    /// Without a vector of the model in use.
    pub pending: i64,
    /// Who makes vectors; without one memories are found by their words alone.
    pub model: Option<String>,
    /// Why it makes none; it is asked again every minute.
    pub error: Option<String>,
    /// Bytes of vectors in memory.
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

    /// Who makes vectors from now on; `None` finds by words alone.
    pub fn set_embedder(&self, embedder: Option<Arc<dyn Embedder>>) {
        *self.embedder.write().unwrap_or_else(PoisonError::into_inner) = embedder;
        self.note_failure(None);
        self.replaced.notify_one();
        self.wake.notify_one();
    }

    /// What must not be remembered from now on.
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

    /// Nothing is remembered: known without asking the file.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Leaves its file as one that holds everything, where it was opened at all.
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

    /// What is not there is not made in order to look into it.
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

    /// Stores memories in one transaction and returns them as they were stored.
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

    /// A new memory of an agent, made now.
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

    /// The operator forgets one memory, whoever's it is.
    pub async fn forget_memory(&self, id: &MemoryId) -> Result<()> {
        let wanted = id.clone();
        let gone =
            self.delete_where(move |tx| Ok(memory::delete(tx, &wanted)?.into_iter().collect())).await?;
        if gone == 0 { Err(Error::UnknownMemory(id.to_string())) } else { Ok(()) }
    }

    /// An agent forgets what it stored itself, by id or key.
    pub async fn forget_own(&self, viewer: &MemoryViewer, name: &str) -> Result<usize> {
        let (viewer, name) = (viewer.clone(), name.to_owned());
        self.delete_where(move |tx| memory::delete_by_author(tx, &viewer, &name)).await
    }

    /// All that an agent or a session brought, or of it those of one scope.
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

/// The one door for what is remembered, whoever brings it: a model, the API, a file or a folded history.
fn validate_memory(mut memory: MemoryEntry) -> Result<MemoryEntry> {
    if memory.key.is_empty() {
        memory.key = polyclaw_domain::memory::derived_key("note", &memory.content);
    }
    memory.validate_limits()?;
    Ok(memory)
}

/// An id that another owner's memory has already gives way to one of its own.
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
