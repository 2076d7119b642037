//! In-memory index of all memory vectors, loaded on first use and released when idle. A search compares all vectors of
//! the visible owners: exact, and fast enough for hundreds of thousands.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use polyclaw_domain::embedding::DotProductFn;
use polyclaw_domain::recall::MemorySeq;
use polyclaw_store::Tx;
use polyclaw_store::memory::{self, MemoryOwnerCount, QuantizedVector};

/// Memory per vector besides its values.
const ROW_OVERHEAD_BYTES: usize = 16;

pub struct VectorIndex {
    max_bytes: usize,
    product: DotProductFn,
    cache: RwLock<Option<VectorCache>>,
    /// Number of searches, to detect idle time.
    uses: AtomicU64,
}

struct VectorCache {
    model: String,
    dim: usize,
    max_rows: usize,
    seqs: Vec<MemorySeq>,
    owners: Vec<i64>,
    scales: Vec<f32>,
    values: Vec<i8>,
}

impl VectorIndex {
    pub fn new(max_bytes: usize, product: DotProductFn) -> Self {
        Self { max_bytes, product, cache: RwLock::default(), uses: AtomicU64::new(0) }
    }

    /// Returns the vectors of these owners nearest to the query, nearest first. Loads all vectors if they are not in
    /// memory.
    pub fn nearest(
        &self,
        tx: &mut Tx<'_>,
        model: &str,
        query: &QuantizedVector,
        (owners, limit): (&[MemoryOwnerCount], usize),
    ) -> polyclaw_store::Result<Vec<(MemorySeq, f32)>> {
        self.uses.fetch_add(1, Ordering::Relaxed);
        let dim = query.values.len();
        if let Some(cache) = self.read_cache().as_ref().filter(|cache| cache.matches_model(model, dim)) {
            return Ok(cache.nearest(query, owners, limit, self.product));
        }
        // The lock is held while loading, so that concurrent changes wait and are then applied to what was loaded.
        let mut slot = self.write_cache();
        if !slot.as_ref().is_some_and(|cache| cache.matches_model(model, dim)) {
            *slot = Some(VectorCache::load(tx, model, dim, self.max_bytes)?);
        }
        Ok(slot.as_ref().map(|cache| cache.nearest(query, owners, limit, self.product)).unwrap_or_default())
    }

    /// Adds a stored vector to the cache.
    pub fn put_vector(&self, model: &str, (seq, owner): (MemorySeq, i64), vector: &QuantizedVector) {
        let mut slot = self.write_cache();
        if let Some(cache) = slot.as_mut().filter(|cache| cache.matches_model(model, vector.values.len())) {
            cache.remove(seq);
            cache.push(seq, owner, vector.scale, vector.values.iter().copied());
        }
    }

    /// Removes vectors of changed or deleted memories.
    pub fn remove_vectors(&self, seqs: &[MemorySeq]) {
        if seqs.is_empty() {
            return;
        }
        if let Some(cache) = self.write_cache().as_mut() {
            seqs.iter().for_each(|seq| cache.remove(*seq));
        }
    }

    pub fn cached_bytes(&self) -> usize {
        self.read_cache()
            .as_ref()
            .map_or(0, |cache| cache.values.capacity() + cache.seqs.capacity() * ROW_OVERHEAD_BYTES)
    }

    pub fn search_count(&self) -> u64 {
        self.uses.load(Ordering::Relaxed)
    }

    /// Releases the memory; the next search loads the vectors again.
    pub fn release_cache(&self) {
        *self.write_cache() = None;
    }

    fn read_cache(&self) -> RwLockReadGuard<'_, Option<VectorCache>> {
        self.cache.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_cache(&self) -> RwLockWriteGuard<'_, Option<VectorCache>> {
        self.cache.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl VectorCache {
    /// Loads the newest vectors that fit. Older memories are still found by keyword.
    fn load(tx: &mut Tx<'_>, model: &str, dim: usize, most_bytes: usize) -> polyclaw_store::Result<Self> {
        let most = most_bytes / (dim + ROW_OVERHEAD_BYTES);
        let mut cache = Self {
            model: model.to_owned(),
            dim,
            max_rows: most,
            seqs: Vec::new(),
            owners: Vec::new(),
            scales: Vec::new(),
            values: Vec::new(),
        };
        let signed = |byte: &u8| i8::from_le_bytes([*byte]);
        memory::scan_vectors(tx, model, dim, most, |seq, owner, scale, bytes| {
            cache.push(seq, owner, scale, bytes.iter().map(signed));
        })?;
        cache.values.shrink_to_fit();
        Ok(cache)
    }

    fn matches_model(&self, model: &str, dim: usize) -> bool {
        self.model == model && self.dim == dim
    }

    fn push(&mut self, seq: MemorySeq, owner: i64, scale: f32, values: impl Iterator<Item = i8>) {
        if self.seqs.len() >= self.max_rows
            && let Some(oldest) = self.seqs.iter().min().copied()
        {
            self.remove(oldest);
        }
        self.seqs.push(seq);
        self.owners.push(owner);
        self.scales.push(scale);
        self.values.extend(values);
        self.values.resize(self.seqs.len() * self.dim, 0);
    }

    fn remove(&mut self, seq: MemorySeq) {
        let Some(at) = self.seqs.iter().position(|known| *known == seq) else { return };
        let last = self.seqs.len() - 1;
        self.seqs.swap_remove(at);
        self.owners.swap_remove(at);
        self.scales.swap_remove(at);
        self.values.copy_within(last * self.dim.., at * self.dim);
        self.values.truncate(last * self.dim);
    }

    fn nearest(
        &self,
        query: &QuantizedVector,
        owners: &[MemoryOwnerCount],
        limit: usize,
        product: DotProductFn,
    ) -> Vec<(MemorySeq, f32)> {
        let mut owners: Vec<i64> = owners.iter().map(|share| share.owner).collect();
        owners.sort_unstable();
        let mut best = TopMatches::new(limit);
        for (at, row) in self.values.chunks_exact(self.dim).enumerate() {
            if owners.binary_search(&self.owners[at]).is_ok() {
                best.offer(
                    self.seqs[at],
                    similarity(product(&query.values, row), query.scale * self.scales[at]),
                );
            }
        }
        best.into_sorted()
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a sum of products of bytes is far below what a float can tell apart"
)]
fn similarity(dot: i32, scale: f32) -> f32 {
    dot as f32 * scale
}

/// The best matches so far. Comparing a new match with the worst of them is nearly always enough.
struct TopMatches {
    limit: usize,
    kept: Vec<(MemorySeq, f32)>,
    worst: f32,
}

impl TopMatches {
    fn new(limit: usize) -> Self {
        Self { limit, kept: Vec::with_capacity(limit * 2), worst: f32::NEG_INFINITY }
    }

    fn offer(&mut self, seq: MemorySeq, near: f32) {
        if near <= self.worst || self.limit == 0 {
            return;
        }
        self.kept.push((seq, near));
        if self.kept.len() >= self.limit * 2 {
            self.truncate_to_limit();
        }
    }

    fn truncate_to_limit(&mut self) {
        self.kept.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        self.kept.truncate(self.limit);
        if self.kept.len() == self.limit {
            self.worst = self.kept.last().map_or(f32::NEG_INFINITY, |(_, near)| *near);
        }
    }

    fn into_sorted(mut self) -> Vec<(MemorySeq, f32)> {
        self.truncate_to_limit();
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::embedding::dot_product;
    use polyclaw_store::Db;

    use super::*;

    fn unit(values: &[f32]) -> QuantizedVector {
        let length = values.iter().map(|v| v * v).sum::<f32>().sqrt();
        memory::quantize_vector(&values.iter().map(|v| v / length).collect::<Vec<_>>())
    }

    fn empty(dim: usize, most: usize) -> VectorCache {
        let model = "m".to_owned();
        VectorCache {
            model,
            dim,
            max_rows: most,
            seqs: vec![],
            owners: vec![],
            scales: vec![],
            values: vec![],
        }
    }

    fn share(owner: i64) -> MemoryOwnerCount {
        MemoryOwnerCount { owner, memories: 1 }
    }

    #[test]
    fn nearest_returns_closest_vectors_of_given_owners() {
        let mut cache = empty(3, 100);
        for (seq, owner, vector) in [
            (1, 1, [1.0, 0.0, 0.0]),
            (2, 1, [0.9, 0.1, 0.0]),
            (3, 2, [1.0, 0.0, 0.0]),
            (4, 1, [0.0, 0.0, 1.0]),
        ] {
            let vector = unit(&vector);
            cache.push(seq, owner, vector.scale, vector.values.into_iter());
        }
        let query = unit(&[1.0, 0.0, 0.0]);
        let found = cache.nearest(&query, &[share(1)], 2, dot_product);
        assert_eq!(found.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [1, 2]);
        assert!((found[0].1 - 1.0).abs() < 0.01, "{found:?}");
        assert!(cache.nearest(&query, &[], 9, dot_product).is_empty());
        cache.remove(1);
        cache.remove(77);
        assert_eq!(cache.nearest(&query, &[share(1), share(2)], 1, dot_product)[0].0, 3);
        assert_eq!(cache.values.len(), 9);
    }

    #[test]
    fn full_vector_cache_evicts_oldest() {
        let mut cache = empty(2, 2);
        for seq in 1..=3 {
            cache.push(seq, 1, 0.1, [1, 1].into_iter());
        }
        assert_eq!(cache.seqs, [2, 3].map(|n| if n == 2 { 2 } else { 3 }));
        assert_eq!(cache.values.len(), 4);
    }

    #[tokio::test]
    async fn vector_cache_loads_on_first_search_and_after_release() {
        let (db, vectors) =
            (Db::memory_db_in_memory().unwrap(), std::sync::Arc::new(VectorIndex::new(1 << 20, dot_product)));
        vectors.put_vector("m", (1, 1), &unit(&[1.0, 0.0]));
        assert_eq!(vectors.cached_bytes(), 0, "nobody asked yet");
        let asked = std::sync::Arc::clone(&vectors);
        let ask = move |tx: &mut Tx<'_>| asked.nearest(tx, "m", &unit(&[1.0, 0.0]), (&[share(1)], 5));
        assert!(db.read(ask.clone()).await.unwrap().is_empty());
        vectors.put_vector("m", (1, 1), &unit(&[1.0, 0.0]));
        vectors.put_vector("other", (2, 1), &unit(&[1.0, 0.0]));
        assert_eq!(db.read(ask.clone()).await.unwrap().len(), 1);
        vectors.release_cache();
        assert!(db.read(ask).await.unwrap().is_empty(), "the file has none");
        assert_eq!(vectors.search_count(), 3);
    }
}
