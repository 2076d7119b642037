//! The provider against a model server on the wire: real HTTP over loopback.
#![allow(clippy::unwrap_used, reason = "the lint's own exception for tests does not reach fixtures")]

mod broken;
mod calls;
mod cancel;
mod detect;
mod embedded;
mod embeddings;
mod errors;
mod fallback;
mod fixture;
mod images;
mod listing;
mod llama;
mod quiet;
mod reuse;
mod same_model;
mod streaming;
mod tools;
