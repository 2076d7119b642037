//! The embedding loop. Pending memories are rows, so a crash loses nothing. It runs at half load, because memories are
//! found by keyword meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclaw_domain::embedding::Embedder;
use polyclaw_domain::provider::{ErrorClass, ProviderError};
use polyclaw_store::Tx;
use polyclaw_store::memory::{self, QuantizedVector, StoredVector as Waiting};

use super::MemoryStore;
use crate::core::Engine;
use crate::error::Result;

/// Pause after an embedder failure.
const EMBED_RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// Vectors are released from memory after this long without a search.
const VECTOR_CACHE_IDLE_TIMEOUT: Duration = Duration::from_secs(600);

pub(crate) async fn run_embed_loop(engine: &Engine) -> Result<()> {
    let memories = engine.memory_store();
    let mut current = String::new();
    while !engine.is_draining() {
        let Some(embedder) = memories.embedder().filter(|_| !memories.is_empty()) else {
            memories.wait_for_pending().await;
            continue;
        };
        if current != embedder.model_id() {
            embedder.model_id().clone_into(&mut current);
            memories.mark_outdated_vectors(&current).await?;
        }
        match memories.embed_batch(&embedder).await? {
            EmbedOutcome::All => memories.wait_for_pending().await,
            EmbedOutcome::Some(took) => tokio::time::sleep(took).await,
            EmbedOutcome::Failed => {
                drop(tokio::time::timeout(EMBED_RETRY_INTERVAL, memories.replaced.notified()).await);
            }
        }
    }
    Ok(())
}

enum EmbedOutcome {
    /// Nothing is pending.
    All,
    /// Duration of the batch; the loop pauses for the same time.
    Some(Duration),
    Failed,
}

impl MemoryStore {
    /// Waits until something is pending. Releases cached vectors when they are idle.
    async fn wait_for_pending(&self) {
        while self.vectors.cached_bytes() > 0 {
            let uses = self.vectors.search_count();
            if tokio::time::timeout(VECTOR_CACHE_IDLE_TIMEOUT, self.wake.notified()).await.is_ok() {
                return;
            }
            if self.vectors.search_count() == uses {
                self.vectors.release_cache();
            }
        }
        self.wake.notified().await;
    }

    async fn mark_outdated_vectors(&self, model: &str) -> Result<()> {
        let model = model.to_owned();
        let outdated = self.db().await?.write(move |tx| memory::requeue_other_models(tx, &model)).await?;
        if outdated > 0 {
            tracing::info!(memories = outdated, "embedding model changed; embedding all memories again");
        }
        Ok(())
    }

    async fn embed_batch(&self, embedder: &Arc<dyn Embedder>) -> Result<EmbedOutcome> {
        let batch = embedder.batch_size().max(1);
        let waiting = self.db().await?.read(move |tx| memory::list_pending_embeddings(tx, batch)).await?;
        if waiting.is_empty() {
            return Ok(EmbedOutcome::All);
        }
        let began = Instant::now();
        match embed_texts(&**embedder, &waiting).await {
            Ok(vectors) => {
                self.store_vectors(embedder.model_id(), waiting, vectors).await?;
                self.note_failure(None);
            }
            Err(error) => {
                tracing::warn!(
                    class = error.class.as_str(),
                    "could not embed memories; retrying in a minute: {}",
                    error.message
                );
                self.note_failure(Some(error.message));
                return Ok(EmbedOutcome::Failed);
            }
        }
        Ok(EmbedOutcome::Some(began.elapsed()))
    }

    async fn store_vectors(
        &self,
        model: &str,
        waiting: Vec<Waiting>,
        vectors: Vec<QuantizedVector>,
    ) -> Result<()> {
        let made: Vec<(Waiting, QuantizedVector)> = waiting.into_iter().zip(vectors).collect();
        let (rows, name) = (made.clone(), model.to_owned());
        let write = move |tx: &mut Tx<'_>| {
            rows.iter().map(|(of, vector)| memory::store_vector(tx, of, &name, vector)).collect()
        };
        let kept: Vec<bool> = self.db().await?.write(write).await?;
        for ((of, vector), _) in made.iter().zip(kept).filter(|(_, kept)| *kept) {
            self.vectors.put_vector(model, (of.seq, of.owner), vector);
        }
        Ok(())
    }
}

/// Embeds texts. A text that the model refuses gets a zero vector, so that it does not block the others.
async fn embed_texts(
    embedder: &dyn Embedder,
    waiting: &[Waiting],
) -> std::result::Result<Vec<QuantizedVector>, ProviderError> {
    let texts: Vec<String> = waiting.iter().map(|of| of.content.clone()).collect();
    match embedder.embed_texts(&texts).await {
        Ok(made) => Ok(made.iter().map(|vector| memory::quantize_vector(vector)).collect()),
        Err(error) if !is_refusal(&error) => Err(error),
        Err(_) => {
            let mut made = Vec::with_capacity(texts.len());
            for text in texts {
                let vector = match embedder.embed_texts(std::slice::from_ref(&text)).await {
                    Ok(vectors) => vectors.into_iter().next().unwrap_or_default(),
                    Err(error) if is_refusal(&error) => vec![0.0; embedder.dimensions()],
                    Err(error) => return Err(error),
                };
                made.push(memory::quantize_vector(&vector));
            }
            Ok(made)
        }
    }
}

fn is_refusal(error: &ProviderError) -> bool {
    matches!(error.class, ErrorClass::BadRequest | ErrorClass::ContextTooLong)
}
