//! A small model of our own inside the program: it answers where there is no key, no server and no network.
//!
//! A file is read (`gguf`) into matrices (`matrix`), which the kernels multiply (`kernel`, the only file of the
//! project with `unsafe`). `llama` is the network, `tokenizer` its alphabet, `constraint` what it may write,
//! `generate` the loop; `worker` is the one thread all of it runs on, and `profile` how such a small model is
//! asked. `encoder` is the embedding model, on the same kernels, behind `embed`.

use polyclaw_domain::provider::ModelRef;

mod bench;
mod bytes;
mod cache;
#[cfg(test)]
#[path = "../tests/it/calls.rs"]
mod calls;
mod chat;
mod constraint;
mod embed;
#[cfg(test)]
mod embedding_golden_tests;
mod encoder;
mod encoder_file;
#[cfg(test)]
mod fuzz;
mod generate;
mod gguf;
#[cfg(test)]
mod golden_tests;
mod half;
mod kernel;
mod llama;
mod matrix;
mod profile;
mod safetensors;
mod sample;
#[cfg(test)]
mod synthetic;
mod text;
mod tokenizer;
mod unicode;
mod weights;
mod wordpiece;
mod worker;

pub use bench::{ModelBenchReport, measure_model};
pub use chat::EmbeddedChat;
pub use embed::{CONVERTED_FILE_SHA256, LocalEmbeddings, convert_model, measure_embeddings};
pub use weights::file_sha256;

/// The provider's name: a model of it is `embedded/<name>`.
pub const EMBEDDED_PROVIDER: &str = "embedded";
/// The chat model's name.
pub const CHAT_MODEL_NAME: &str = "smollm2-135m";
/// The chat model as models are named everywhere.
pub fn chat_model() -> ModelRef {
    ModelRef { provider: EMBEDDED_PROVIDER.to_owned(), model: CHAT_MODEL_NAME.to_owned() }
}

/// The product of two vectors in bytes, as fast as this processor multiplies: a `domain::embedding::Product`.
pub fn byte_dot_product(a: &[i8], b: &[i8]) -> i32 {
    kernel::Kernel::detect().dot_product(a, b)
}

/// How many tokens the chat model is shown at most, with its answer.
pub const CHAT_CONTEXT_TOKENS: u64 = 2048;

/// What is wrong with a model file, after "this file can not be used: ".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this model file can not be used: {0}")]
pub struct CorruptModelFile(String);

impl CorruptModelFile {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    fn in_part(self, part: &str) -> Self {
        Self(format!("{part}: {}", self.0))
    }
}
