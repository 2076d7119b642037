//! A small model of our own inside the program: it answers where there is no key, no server and no network.
//!
//! A file is read (`gguf`) into matrices (`matrix`), which the kernels multiply (`kernel`, the only file of the
//! project with `unsafe`). `llama` is the network, `tokenizer` its alphabet, `constraint` what it may write,
//! `generate` the loop; `worker` is the one thread all of it runs on, and `profile` how such a small model is
//! asked.

mod bench;
mod bytes;
mod cache;
mod chat;
mod constraint;
mod generate;
mod gguf;
mod half;
mod kernel;
mod llama;
mod matrix;
mod profile;
#[cfg(test)]
mod real;
mod sample;
#[cfg(test)]
mod synthetic;
mod text;
mod tokenizer;
mod worker;

pub use bench::{Measured, measure};
pub use chat::Chat;

/// The provider's name: a model of it is `embedded/<name>`.
pub const PROVIDER: &str = "embedded";
/// The chat model's name.
pub const CHAT: &str = "smollm2-135m";
/// How many tokens the chat model is shown at most, with its answer.
pub const CONTEXT: u64 = 2048;

/// What is wrong with a model file, after "this file can not be used: ".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this model file can not be used: {0}")]
pub struct Damaged(String);

impl Damaged {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    fn in_part(self, part: &str) -> Self {
        Self(format!("{part}: {}", self.0))
    }
}
