//! Embeddings: texts as points, near each other where they mean the same.

use crate::port::BoxFuture;
use crate::provider::ProviderError;

/// Turns texts into vectors. `model_id` and `dim` are stored with every vector: vectors of two models can not be
/// compared.
pub trait Embedder: Send + Sync {
    fn model_id(&self) -> &str;

    fn dimensions(&self) -> usize;

    /// Texts of one call that make good use of it. A question waits behind those of memories, so they are few where
    /// they take long.
    fn batch_size(&self) -> usize;

    /// One vector a text, of length one; a text without words the model knows is the zero vector, which is near to
    /// nothing.
    fn embed_texts<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ProviderError>>;
}

/// How two vectors in bytes are multiplied. Nearly all of a search's time goes there, so whoever knows the processor
/// brings a faster one than [`product`].
pub type DotProductFn = fn(&[i8], &[i8]) -> i32;

/// What every [`Product`] comes to.
pub fn dot_product(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}
