//! The embedding model behind its port: texts go to one thread, vectors come back.

use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use polyclaw_domain::embedding::Embedder;
use polyclaw_domain::port::BoxFuture;
use polyclaw_domain::provider::{ErrorClass, ProviderError};
use tokio::sync::oneshot;

use super::encoder::TextEncoder;
use super::encoder_file;
use super::kernel::Kernel;
use super::wordpiece::WordPiece;
use super::worker::ModelWorker;
use super::{CorruptModelFile, weights};

/// How long an idle model stays in memory.
const EMBEDDING_IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// The model was trained on texts of up to this many tokens. Longer texts are truncated.
const MAX_INPUT_TOKENS: usize = 256;
/// Texts per call. A long text takes 40 ms, and a query may wait behind the whole batch.
const EMBEDDING_BATCH_SIZE: usize = 2;
const EMBEDDING_MODEL_ID: &str = "embedded/all-minilm-l6-v2";
/// The SHA-256 of the file that [`convert_model`] writes. It is the same on every machine.
pub const CONVERTED_FILE_SHA256: &str = "2e7fd66fbb2e8dbf0d05677ccfe0791e5ad98991134dcafc7679e2905cb68c09";

/// Embeds with the model in a file. The model is loaded on first use.
pub struct LocalEmbeddings {
    worker: ModelWorker<EmbeddingModel>,
}

pub(super) struct EmbeddingModel {
    encoder: TextEncoder,
    words: WordPiece,
    kernel: Kernel,
}

impl EmbeddingModel {
    pub fn read<R: Read + Seek>(file: R, kernel: Kernel) -> Result<Self, CorruptModelFile> {
        let (encoder, words) = encoder_file::read_encoder(file, encoder_file::MINILM_SHAPE)?;
        Ok(Self { encoder, words, kernel })
    }

    /// Returns the vector of a text. A text in a script that the model does not know is embedded like an empty one.
    pub fn embed_text(&self, text: &str) -> Vec<f32> {
        let most = MAX_INPUT_TOKENS.min(self.encoder.shape.positions);
        let tokens = self.words.encode(text, most);
        let read = if self.words.is_mostly_unknown(&tokens) { &[][..] } else { &tokens };
        self.encoder.embed(self.kernel, read)
    }
}

pub(super) fn open_model(path: &Path) -> Result<EmbeddingModel, CorruptModelFile> {
    EmbeddingModel::read(weights::open_verified(path, CONVERTED_FILE_SHA256)?, Kernel::detect())
}

impl LocalEmbeddings {
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self { worker: ModelWorker::new("embeddings", EMBEDDING_IDLE_TIMEOUT, file, open_model) }
    }

    async fn embed_texts(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, ProviderError> {
        let (send, receive) = oneshot::channel();
        let job = move |model: Result<&mut EmbeddingModel, CorruptModelFile>| {
            let embedded = model.map(|model| {
                // The caller is gone, so the rest of the batch is skipped.
                let wanted = texts.iter().take_while(|_| !send.is_closed());
                wanted.map(|text| model.embed_text(text)).collect()
            });
            let _ = send.send(embedded);
        };
        let busy = || {
            embedding_error(
                ErrorClass::Overload,
                "too many texts are queued for the embedding model".to_owned(),
            )
        };
        self.worker.submit(job).map_err(|_| busy())?;
        let stopped = || embedding_error(ErrorClass::Overload, "the embedding model stopped".to_owned());
        let embedded = receive.await.map_err(|_| stopped())?;
        embedded.map_err(|damaged| {
            embedding_error(
                ErrorClass::NotConfigured,
                format!("{damaged}; run `polyclaw model pull` to download it again"),
            )
        })
    }
}

fn embedding_error(class: ErrorClass, message: String) -> ProviderError {
    ProviderError { class, model: EMBEDDING_MODEL_ID.to_owned(), message, retry_after_ms: None }
}

impl Embedder for LocalEmbeddings {
    fn model_id(&self) -> &str {
        EMBEDDING_MODEL_ID
    }

    fn dimensions(&self) -> usize {
        encoder_file::MINILM_SHAPE.width
    }

    fn batch_size(&self) -> usize {
        EMBEDDING_BATCH_SIZE
    }

    fn embed_texts<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ProviderError>> {
        Box::pin(self.embed_texts(texts.to_vec()))
    }
}

/// Builds the file that [`LocalEmbeddings`] reads, from the published weights and vocabulary of all-MiniLM-L6-v2.
pub fn convert_model<R: Read + Seek>(weights: R, vocabulary: &str) -> Result<Vec<u8>, CorruptModelFile> {
    encoder_file::convert_encoder(weights, vocabulary, encoder_file::MINILM_SHAPE)
}

/// Returns the number of short texts embedded per second on this machine.
pub fn measure_embeddings(file: &Path) -> Result<f64, CorruptModelFile> {
    let model = open_model(file)?;
    let text = |n: usize| format!("The ferry number {n} leaves the harbour at nine in the morning.");
    let began = Instant::now();
    let mut done = 0;
    while began.elapsed() < Duration::from_secs(2) {
        model.embed_text(&text(done));
        done += 1;
    }
    Ok(done as f64 / began.elapsed().as_secs_f64())
}
