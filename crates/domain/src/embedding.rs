//! Embeddings: vectors that are close to each other if their texts mean the same.

use crate::port::BoxFuture;
use crate::provider::ProviderError;

/// Turns texts into vectors. `model_id` and `dimensions` are stored with every vector, because vectors of two models
/// cannot be compared.
pub trait Embedder: Send + Sync {
    fn model_id(&self) -> &str;

    fn dimensions(&self) -> usize;

    /// Returns the number of texts per call. Queries wait behind memories, so the batch is small if the model is slow.
    fn batch_size(&self) -> usize;

    /// Returns one vector of length one per text. A text without known words gets the zero vector, which is similar to
    /// nothing.
    fn embed_texts<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ProviderError>>;
}

/// A dot product of two byte vectors. It takes nearly all the time of a search, so callers that know the processor can
/// supply a faster one than [`dot_product`].
pub type DotProductFn = fn(&[i8], &[i8]) -> i32;

/// The reference implementation of [`DotProductFn`].
pub fn dot_product(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}
