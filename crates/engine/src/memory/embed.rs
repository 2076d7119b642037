//! The loop that makes vectors. What waits is a row of the file, so a crash loses nothing; it takes its time, for
//! nobody waits for it: a memory is found by its words from the start.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclaw_domain::embedding::Embedder;
use polyclaw_domain::provider::{ErrorClass, ProviderError};
use polyclaw_store::Tx;
use polyclaw_store::memory::{self, QuantizedVector, StoredVector as Waiting};

use super::Brain;
use crate::core::Engine;
use crate::error::Result;

/// After the model failed.
const AGAIN: Duration = Duration::from_secs(60);
/// Vectors nobody searched for so long are let go.
const IDLE: Duration = Duration::from_secs(600);

pub(crate) async fn embed(engine: &Engine) -> Result<()> {
    let brain = engine.brain();
    let mut current = String::new();
    while !engine.is_draining() {
        let Some(embedder) = brain.embedder().filter(|_| !brain.is_empty()) else {
            brain.rest().await;
            continue;
        };
        if current != embedder.model_id() {
            embedder.model_id().clone_into(&mut current);
            brain.outdate(&current).await?;
        }
        match brain.embed_some(&embedder).await? {
            Made::All => brain.rest().await,
            Made::Some(took) => tokio::time::sleep(took).await,
            Made::Failed => drop(tokio::time::timeout(AGAIN, brain.replaced.notified()).await),
        }
    }
    Ok(())
}

enum Made {
    /// Nothing waits.
    All,
    /// After half of the time something else gets its turn.
    Some(Duration),
    Failed,
}

impl Brain {
    /// Until something waits. Vectors in memory are let go when nobody asks for them.
    async fn rest(&self) {
        while self.vectors.bytes() > 0 {
            let uses = self.vectors.uses();
            if tokio::time::timeout(IDLE, self.wake.notified()).await.is_ok() {
                return;
            }
            if self.vectors.uses() == uses {
                self.vectors.let_go();
            }
        }
        self.wake.notified().await;
    }

    async fn outdate(&self, model: &str) -> Result<()> {
        let model = model.to_owned();
        let outdated = self.db().await?.write(move |tx| memory::requeue_other_models(tx, &model)).await?;
        if outdated > 0 {
            tracing::info!(memories = outdated, "another embedding model: vectors are made again");
        }
        Ok(())
    }

    async fn embed_some(&self, embedder: &Arc<dyn Embedder>) -> Result<Made> {
        let batch = embedder.batch_size().max(1);
        let waiting = self.db().await?.read(move |tx| memory::list_pending_embeddings(tx, batch)).await?;
        if waiting.is_empty() {
            return Ok(Made::All);
        }
        let began = Instant::now();
        match vectors(&**embedder, &waiting).await {
            Ok(vectors) => {
                self.keep(embedder.model_id(), waiting, vectors).await?;
                self.note_failure(None);
            }
            Err(error) => {
                tracing::warn!(
                    class = error.class.as_str(),
                    "memories could not be embedded: {}",
                    error.message
                );
                self.note_failure(Some(error.message));
                return Ok(Made::Failed);
            }
        }
        Ok(Made::Some(began.elapsed()))
    }

    async fn keep(&self, model: &str, waiting: Vec<Waiting>, vectors: Vec<QuantizedVector>) -> Result<()> {
        let made: Vec<(Waiting, QuantizedVector)> = waiting.into_iter().zip(vectors).collect();
        let (rows, name) = (made.clone(), model.to_owned());
        let write = move |tx: &mut Tx<'_>| {
            rows.iter().map(|(of, vector)| memory::store_vector(tx, of, &name, vector)).collect()
        };
        let kept: Vec<bool> = self.db().await?.write(write).await?;
        for ((of, vector), _) in made.iter().zip(kept).filter(|(_, kept)| *kept) {
            self.vectors.put(model, (of.seq, of.owner), vector);
        }
        Ok(())
    }
}

/// A text the model refuses is given the vector that is near to nothing: it would stop all behind it.
async fn vectors(
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
