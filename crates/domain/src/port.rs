//! What the engine needs from the world, beyond the nouns that have ports of their own.

use std::future::Future;
use std::pin::Pin;

use crate::time::Millis;

/// A boxed future: ports are objects, so that tests and the crash simulator can put others in their place.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub trait WallClock: Send + Sync {
    fn now(&self) -> Millis;
}

pub trait IdGenerator: Send + Sync {
    /// A fresh id that sorts after those made before it on this node.
    fn next_id(&self) -> String;

    /// An unguessable word, for frame delimiters and tokens.
    fn fresh_nonce(&self) -> String;
}
