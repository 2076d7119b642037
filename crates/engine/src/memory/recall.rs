//! Recall: searches by keyword and by meaning in parallel under one deadline. A late result is dropped, and the reason
//! is reported.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::memory::{MemoryEntry, MemoryViewer};
use polyclaw_domain::recall::{self, CANDIDATES_PER_SEARCH, MIN_SIMILARITY, MemorySeq};
use polyclaw_store::Tx;
use polyclaw_store::memory::{self, MemoryOwnerCount};
use tokio::time::{Instant, timeout_at};

use super::MemoryStore;
use crate::error::Result;

/// Timeout of a turn's recall.
const RECALL_TIMEOUT: Duration = Duration::from_millis(150);
/// Timeout of a person's search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum bytes of a query.
const MAX_QUERY_BYTES: usize = 2_000;

/// A search and its viewer.
pub struct MemorySearch<'a> {
    /// `None`: the operator, who sees everything.
    pub viewer: Option<&'a MemoryViewer>,
    pub text: &'a str,
    pub limit: usize,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecalledMemories {
    /// Best first.
    pub memories: Vec<MemoryEntry>,
    /// Why the search used keywords only, if it did.
    pub words_only: Option<&'static str>,
}

impl MemoryStore {
    /// Memories that match a turn's input, within its token budget and deadline.
    pub async fn recall_memories(
        &self,
        viewer: &MemoryViewer,
        text: &str,
        budget_tokens: usize,
    ) -> Result<RecalledMemories> {
        let search = MemorySearch { viewer: Some(viewer), text, limit: CANDIDATES_PER_SEARCH };
        let (mut found, words_only) = self.rank_matches(&search, Instant::now() + RECALL_TIMEOUT).await?;
        recall::dedupe_contents(&mut found);
        Ok(RecalledMemories {
            memories: recall::take_within_budget(found, budget_tokens, recall::MAX_RECALLED_MEMORIES),
            words_only,
        })
    }

    /// Searches with a longer timeout and without a budget, and returns each memory with its score.
    pub async fn search(
        &self,
        search: &MemorySearch<'_>,
    ) -> Result<(Vec<(MemoryEntry, f64)>, Option<&'static str>)> {
        let (mut found, words_only) = self.rank_matches(search, Instant::now() + SEARCH_TIMEOUT).await?;
        found.truncate(search.limit);
        Ok((found, words_only))
    }

    async fn rank_matches(
        &self,
        search: &MemorySearch<'_>,
        deadline: Instant,
    ) -> Result<(Vec<(MemoryEntry, f64)>, Option<&'static str>)> {
        if self.is_empty() || self.db().await.map(|_| self.is_empty())? {
            return Ok((Vec::new(), None));
        }
        let text = query_tail(search.text);
        let (words, vector) = tokio::join!(
            timeout_at(deadline, self.search_words(search.viewer, text)),
            self.embed_query(text, deadline)
        );
        let Ok(words) = words else { return Ok((Vec::new(), Some("the file of memories was slow"))) };
        let (owners, by_words) = words?;
        if owners.is_empty() {
            return Ok((Vec::new(), None));
        }
        let (by_meaning, words_only) = match vector {
            Ok(vector) => self.search_vectors(owners, vector, deadline).await,
            Err(why) => (Vec::new(), Some(why)),
        };
        let fused = recall::fuse_ranks(&by_words, &by_meaning);
        Ok((self.fetch_matches(search.viewer, fused).await?, words_only))
    }

    async fn search_words(
        &self,
        viewer: Option<&MemoryViewer>,
        text: &str,
    ) -> Result<(Vec<MemoryOwnerCount>, Vec<MemorySeq>)> {
        let (viewer, text) = (viewer.cloned(), text.to_owned());
        let read = move |tx: &mut Tx<'_>| {
            let owners = match &viewer {
                Some(viewer) => memory::list_visible_owners(tx, viewer)?,
                None => memory::list_owners(tx)?,
            };
            let found = memory::search_by_words(tx, &owners, &text, CANDIDATES_PER_SEARCH)?;
            Ok((owners, found))
        };
        Ok(self.db().await?.read(read).await?)
    }

    async fn embed_query(
        &self,
        text: &str,
        deadline: Instant,
    ) -> std::result::Result<(String, Vec<f32>), &'static str> {
        let embedder = self.embedder().ok_or("there is no embedding model")?;
        let texts = [text.to_owned()];
        let embedded = timeout_at(deadline, embedder.embed_texts(&texts)).await;
        let vectors = embedded.map_err(|_| "the embedding model was slow")?.map_err(|error| {
            tracing::warn!(
                class = error.class.as_str(),
                "could not embed a query; searching by keyword only: {}",
                error.message
            );
            "the embedding model failed"
        })?;
        let vector = vectors.into_iter().next().ok_or("the embedding model failed")?;
        if vector.iter().all(|value| *value == 0.0) {
            return Err("the embedding model does not know these words");
        }
        Ok((embedder.model_id().to_owned(), vector))
    }

    /// The search continues after the deadline, so that the next one finds the vectors in memory.
    async fn search_vectors(
        &self,
        owners: Vec<MemoryOwnerCount>,
        (model, vector): (String, Vec<f32>),
        deadline: Instant,
    ) -> (Vec<MemorySeq>, Option<&'static str>) {
        let vectors = Arc::clone(&self.vectors);
        let query = memory::quantize_vector(&vector);
        let read =
            move |tx: &mut Tx<'_>| vectors.nearest(tx, &model, &query, (&owners, CANDIDATES_PER_SEARCH));
        let Ok(db) = self.db().await else { return (Vec::new(), Some("the file of memories failed")) };
        match timeout_at(deadline, db.read(read)).await {
            Ok(Ok(found)) => (
                found.into_iter().filter(|(_, near)| *near >= MIN_SIMILARITY).map(|(seq, _)| seq).collect(),
                None,
            ),
            Ok(Err(error)) => {
                tracing::warn!(%error, "could not read memory vectors; using keyword matches only");
                (Vec::new(), Some("the file of memories failed"))
            }
            Err(_) => (Vec::new(), Some("the vectors were not read in time")),
        }
    }

    /// Loads the memories that the viewer may see, weighted and sorted.
    async fn fetch_matches(
        &self,
        viewer: Option<&MemoryViewer>,
        fused: Vec<(MemorySeq, f64)>,
    ) -> Result<Vec<(MemoryEntry, f64)>> {
        let (filter, seqs) = (viewer.cloned(), fused.iter().map(|(seq, _)| *seq).collect::<Vec<_>>());
        let read = move |tx: &mut Tx<'_>| match &filter {
            Some(viewer) => memory::fetch_visible(tx, viewer, &seqs),
            None => memory::fetch_all(tx, &seqs),
        };
        let rows = self.db().await?.read(read).await?;
        let score =
            |seq: MemorySeq| fused.iter().find(|(known, _)| *known == seq).map_or(0.0, |(_, score)| *score);
        let mut found: Vec<(MemoryEntry, f64)> =
            rows.into_iter().map(|(seq, memory)| (memory, score(seq))).collect();
        recall::weigh_candidates(&mut found, viewer, self.clock.now());
        Ok(found)
    }
}

/// Takes the end of a long text, because questions usually come last.
fn query_tail(text: &str) -> &str {
    let start = text.len().saturating_sub(MAX_QUERY_BYTES);
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_tail_keeps_end_at_character_boundary() {
        assert_eq!(query_tail("short"), "short");
        assert_eq!(query_tail(""), "");
        let long = "é".repeat(1_500) + "why?";
        assert!(query_tail(&long).ends_with("why?") && query_tail(&long).len() <= MAX_QUERY_BYTES);
    }
}
