//! A provider wired to a scripted server, a clock that stands still, and a sink that remembers.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use polyclaw_domain::port::WallClock;
use polyclaw_domain::provider::{
    ErrorClass, ModelProvider, ModelRef, ModelReply, Prompt, PromptMessage, ProviderError, StreamDelta,
};
use polyclaw_domain::time::Millis;
use polyclaw_provider::{ModelProviders, ModelProvidersSettings, ProviderSettings, ProviderVendor};
use polyclaw_testkit::model_server::{ModelServer, ReplyScript};

pub const KEY: &str = "sk-test-0123456789";

/// Both wire shapes, for tests that must hold on each.
pub const SHAPES: [&str; 2] = ["openai/m", "anthropic/m"];

#[derive(Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub fn advance(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl WallClock for ManualClock {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }
}

pub struct Bench {
    pub server: ModelServer,
    pub clock: Arc<ManualClock>,
    pub models: ModelProviders,
}

impl Bench {
    /// Providers `openai` and `anthropic`, both on one scripted server.
    pub fn new() -> Self {
        Self::with(|server| {
            vec![
                ProviderSettings::new("openai", ProviderVendor::OpenAi).base_url(server.url()).api_key(KEY),
                ProviderSettings::new("anthropic", ProviderVendor::Anthropic)
                    .base_url(server.url())
                    .api_key(KEY),
            ]
        })
    }

    pub fn with(providers: impl FnOnce(&ModelServer) -> Vec<ProviderSettings>) -> Self {
        let server = ModelServer::start();
        let clock = Arc::new(ManualClock::default());
        let settings =
            ModelProvidersSettings { providers: providers(&server), ..ModelProvidersSettings::default() };
        let models = ModelProviders::new(settings, Arc::clone(&clock) as Arc<dyn WallClock>).unwrap();
        Self { server, clock, models }
    }

    pub async fn ask(&self, model: &str, prompt: &Prompt) -> Result<ModelReply, ProviderError> {
        self.ask_all(&[model], prompt).await.0
    }

    pub async fn says(&self, model: &str, script: ReplyScript) -> Result<ModelReply, ProviderError> {
        self.server.push(script);
        self.ask(model, &user("hi")).await
    }

    /// The result and everything that was streamed on the way to it.
    pub async fn ask_all(
        &self,
        models: &[&str],
        prompt: &Prompt,
    ) -> (Result<ModelReply, ProviderError>, Vec<StreamDelta>) {
        let candidates = refs(models);
        let deltas = Mutex::new(Vec::new());
        let sink = |delta| deltas.lock().unwrap().push(delta);
        let result = self.models.stream_reply(&candidates, prompt, &sink).await;
        (result, deltas.into_inner().unwrap())
    }

    pub async fn class(&self, model: &str, script: ReplyScript) -> ErrorClass {
        self.says(model, script).await.unwrap_err().class
    }
}

/// Of the embedded chat model.
pub fn weights() -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.tools/model/smollm2.gguf");
    assert!(path.exists(), "{} is missing: `scripts/need.sh rust` fetches it", path.display());
    path
}

pub fn refs(models: &[&str]) -> Vec<ModelRef> {
    models.iter().map(|model| ModelRef::parse(model).unwrap()).collect()
}

pub fn user(text: &str) -> Prompt {
    Prompt { messages: vec![PromptMessage::user_text(text)], ..Prompt::default() }
}

pub fn text(text: &str) -> StreamDelta {
    StreamDelta::Text(text.to_owned())
}
