//! The embedded model as a chat model.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use polyclaw_domain::provider::{DeltaSink, ErrorClass, Prompt, StreamDelta, TokenUsage};
use polyclaw_domain::tool::ToolCall;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::generate::{EmbeddedEngine, GeneratedAnswer, GenerationError};
use super::text::ReplyText;
use super::weights::FileIdentity;
use super::worker::{ModelWorker, WorkerBusy};
use super::{CorruptModelFile, profile};
use crate::answer::ModelAnswer;
use crate::error_class::ModelCallError;

/// How long an idle model stays in memory.
const MODEL_IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Answers with the model in a file, on its own thread. The model is loaded on first use.
pub struct EmbeddedChat {
    file: PathBuf,
    worker: ModelWorker<EmbeddedEngine>,
    /// Set while the cache is being prefilled.
    preparing: Mutex<Option<CancelOnDrop>>,
    /// Identity of the file when it could last not be loaded.
    damaged: Arc<Mutex<Option<FileIdentity>>>,
}

enum GenerationEvent {
    Text(String),
    Done(Result<GeneratedAnswer, ModelCallError>),
}

/// Cancels the job when the caller is gone.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl EmbeddedChat {
    pub fn new(file: impl Into<PathBuf>) -> Self {
        let file = file.into();
        let damaged = Arc::<Mutex<Option<FileIdentity>>>::default();
        let noted = Arc::clone(&damaged);
        let worker =
            ModelWorker::new("embedded-model", MODEL_IDLE_TIMEOUT, file.clone(), move |path: &Path| {
                load_engine(path, &noted)
            });
        Self { file, worker, preparing: Mutex::default(), damaged }
    }

    /// Whether the model file exists.
    pub fn weights_exist(&self) -> bool {
        self.file.exists()
    }

    /// Whether the last load failed and the file has not changed since.
    pub fn is_corrupt(&self) -> bool {
        let damaged = *self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        damaged.is_some() && damaged == FileIdentity::from_path(&self.file)
    }

    /// Loads the model and prefills the cache with the start of conversations. A question does not wait for this: it
    /// cancels the prefill and reuses what is done.
    pub async fn warm_up(&self, opening: Prompt) {
        let (send, done) = oneshot::channel();
        let asking = CancelOnDrop(Arc::new(AtomicBool::new(false)));
        let cancelled = Arc::clone(&asking.0);
        let job = move |engine: Result<&mut EmbeddedEngine, CorruptModelFile>| {
            warm_up_engine(engine, &opening, &cancelled);
            let _ = send.send(());
        };
        *self.preparing.lock().unwrap_or_else(PoisonError::into_inner) = Some(asking);
        // If the queue is full, questions wait in it, and they load the model anyway.
        if self.worker.submit(job).is_ok() {
            let _ = done.await;
        }
    }

    pub(crate) async fn generate_answer(
        &self,
        prompt: &Prompt,
        sink: DeltaSink<'_>,
    ) -> Result<ModelAnswer, ModelCallError> {
        drop(self.preparing.lock().unwrap_or_else(PoisonError::into_inner).take());
        let (send, mut events) = unbounded_channel();
        let asking = CancelOnDrop(Arc::new(AtomicBool::new(false)));
        let (cancelled, job) = (Arc::clone(&asking.0), prompt.clone());
        let submitted = self.worker.submit(move |engine| run_generation(engine, &job, &cancelled, &send));
        submitted.map_err(|WorkerBusy| busy_error())?;
        let has_tools = !prompt.tools.is_empty();
        let mut reply = ReplyText::starting_after(profile::REPLY_JSON_PREFIX);
        let mut text = String::new();
        while let Some(event) = events.recv().await {
            match event {
                GenerationEvent::Text(piece) => {
                    let piece = if has_tools { reply.push(&piece) } else { piece };
                    if !piece.is_empty() {
                        text.push_str(&piece);
                        sink(StreamDelta::Text(piece));
                    }
                }
                GenerationEvent::Done(answer) => {
                    return answer.and_then(|answer| build_answer(answer, text, has_tools));
                }
            }
        }
        Err(ModelCallError::new(
            ErrorClass::Overload,
            "the embedded model stopped in the middle of its response",
        ))
    }
}

fn busy_error() -> ModelCallError {
    let message = "too many requests are queued for the embedded model";
    ModelCallError { retry_after_ms: Some(5000), ..ModelCallError::new(ErrorClass::Overload, message) }
}

/// Runs on the model thread.
fn load_engine(
    path: &Path,
    damaged: &Mutex<Option<FileIdentity>>,
) -> Result<EmbeddedEngine, CorruptModelFile> {
    let (began, mark) = (Instant::now(), FileIdentity::from_path(path));
    let opened = EmbeddedEngine::open(path);
    *damaged.lock().unwrap_or_else(PoisonError::into_inner) = mark.filter(|_| opened.is_err());
    let engine = opened?;
    tracing::info!(
        kernel = engine.kernel_name(),
        ms = began.elapsed().as_millis(),
        "loaded the embedded model"
    );
    Ok(engine)
}

/// Runs on the model thread.
fn warm_up_engine(
    engine: Result<&mut EmbeddedEngine, CorruptModelFile>,
    opening: &Prompt,
    cancelled: &AtomicBool,
) {
    match engine {
        Ok(engine) => {
            let began = Instant::now();
            engine.prefill(&profile::opening_lines(opening), &|| !cancelled.load(Ordering::Relaxed));
            tracing::info!(ms = began.elapsed().as_millis(), "prefilled the embedded model");
        }
        Err(damaged) => tracing::warn!(%damaged, "could not load the embedded model"),
    }
}

/// Runs on the model thread.
fn run_generation(
    engine: Result<&mut EmbeddedEngine, CorruptModelFile>,
    prompt: &Prompt,
    cancelled: &AtomicBool,
    events: &UnboundedSender<GenerationEvent>,
) {
    let go_on = || !cancelled.load(Ordering::Relaxed);
    let answer = engine.map_err(corrupt_model_error).and_then(|engine| {
        let ask = profile::build_generation_request(prompt, &|text| engine.count_tokens(text));
        let mut text_of = |piece: &str| {
            let _ = events.send(GenerationEvent::Text(piece.to_owned()));
        };
        engine.generate(&ask, &mut text_of, &go_on).map_err(|broken| match broken {
            GenerationError::Cancelled => {
                ModelCallError::new(ErrorClass::Timeout, "the request was cancelled")
            }
            GenerationError::TooLong(tokens) => ModelCallError::new(
                ErrorClass::ContextTooLong,
                format!("the prompt has {tokens} tokens, more than the context window"),
            ),
            GenerationError::Schema(why) => {
                ModelCallError::new(ErrorClass::BadRequest, format!("parameters of a tool: {why}"))
            }
        })
    });
    let _ = events.send(GenerationEvent::Done(answer));
}

fn corrupt_model_error(damaged: CorruptModelFile) -> ModelCallError {
    let message = format!("{damaged}; run `polyclaw model pull` to download it again");
    ModelCallError::new(ErrorClass::NotConfigured, message)
}

fn build_answer(
    answer: GeneratedAnswer,
    text: String,
    has_tools: bool,
) -> Result<ModelAnswer, ModelCallError> {
    let count = |count: usize| u64::try_from(count).ok();
    let usage = TokenUsage {
        input_tokens: count(answer.input),
        output_tokens: count(answer.output),
        cached_tokens: count(answer.cached),
    };
    let calls = if has_tools { parse_tool_call(&answer.text)? } else { Vec::new() };
    Ok(ModelAnswer { text: text.trim().to_owned(), calls, usage, truncated: answer.truncated })
}

/// Parses the tool call in a line of JSON. A reply yields no call.
fn parse_tool_call(line: &str) -> Result<Vec<ToolCall>, ModelCallError> {
    let unreadable = || ModelCallError::malformed("the embedded model's response is not the required JSON");
    let mut value: Value = serde_json::from_str(line).map_err(|_| unreadable())?;
    let name = value["tool"].as_str().ok_or_else(unreadable)?.to_owned();
    match value["arguments"].take() {
        Value::Null => Ok(Vec::new()),
        // The id is made unique in `make_ids_unique`.
        arguments => Ok(vec![ToolCall { id: "call_1".to_owned(), name, arguments }]),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use polyclaw_domain::hex::encode_hex;
    use polyclaw_domain::provider::PromptMessage;
    use sha2::{Digest, Sha256};

    use super::super::synthetic;
    use super::*;

    fn put(bytes: &[u8], file: &Path) {
        let writing = file.with_extension("writing");
        fs::write(&writing, bytes).unwrap();
        fs::rename(&writing, file).unwrap();
    }

    #[tokio::test]
    async fn replaced_model_file_is_reloaded_and_verified() {
        let whole = synthetic::model_file();
        let mut damaged = whole.clone();
        *damaged.last_mut().unwrap() ^= 1;
        let root = std::env::temp_dir().join(format!("polyclaw-chat-{}", std::process::id()));
        let file = root.join(encode_hex(&Sha256::digest(&whole))).join("tiny.gguf");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let chat = EmbeddedChat::new(&file);
        let messages = vec![PromptMessage::user_text("hello")];
        let prompt = Prompt { messages, max_tokens: Some(2), ..Prompt::default() };
        for (bytes, is_damaged) in [(&whole, false), (&damaged, true), (&whole, false)] {
            put(bytes, &file);
            assert!(!chat.is_corrupt(), "nobody has tried this one yet");
            let refused = chat.generate_answer(&prompt, &|_| {}).await.err().map(|fault| fault.class);
            assert_eq!(refused, is_damaged.then_some(ErrorClass::NotConfigured));
            assert_eq!(chat.is_corrupt(), is_damaged);
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
