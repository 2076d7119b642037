//! A small model inside the program. It answers without a key, a server or a network.
//!
//! `gguf` reads the file into matrices (`matrix`), which the kernels multiply (`kernel`, the only part of the project
//! with `unsafe`). `llama` is the network, `tokenizer` its tokenizer, `constraint` restricts the output to a schema and
//! `generate` is the loop. `worker` is the thread that runs all of it, and `profile` builds prompts for such a small
//! model. `encoder` is the embedding model, on the same kernels, behind `embed`.

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

/// The provider name. A model reference is `embedded/<name>`.
pub const EMBEDDED_PROVIDER: &str = "embedded";
/// The name of the chat model.
pub const CHAT_MODEL_NAME: &str = "smollm2-135m";
/// Returns the reference of the chat model.
pub fn chat_model() -> ModelRef {
    ModelRef { provider: EMBEDDED_PROVIDER.to_owned(), model: CHAT_MODEL_NAME.to_owned() }
}

/// Returns the dot product of two byte vectors on the fastest kernel: a `domain::embedding::DotProductFn`.
pub fn byte_dot_product(a: &[i8], b: &[i8]) -> i32 {
    kernel::Kernel::detect().dot_product(a, b)
}

/// The context size that is reported for the chat model, in tokens.
pub const CHAT_CONTEXT_TOKENS: u64 = 2048;

/// The reason why a model file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this model file cannot be used: {0}")]
pub struct CorruptModelFile(String);

impl CorruptModelFile {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    fn in_part(self, part: &str) -> Self {
        Self(format!("{part}: {}", self.0))
    }
}
