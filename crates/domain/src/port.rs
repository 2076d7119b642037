//! Ports of the engine that belong to no other module.

use std::future::Future;
use std::pin::Pin;

use crate::time::Millis;

/// A boxed future: ports are trait objects, so that tests and the crash simulator can replace them.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub trait WallClock: Send + Sync {
    fn now(&self) -> Millis;
}

pub trait IdGenerator: Send + Sync {
    /// Returns a new id that sorts after the earlier ones of this node.
    fn next_id(&self) -> String;

    /// Returns an unguessable text, for frame delimiters and tokens.
    fn fresh_nonce(&self) -> String;
}
