//! An in-process model: a function from a prompt to a reply.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use polyclaw_domain::port::BoxFuture;
use polyclaw_domain::provider::{
    DeltaSink, ModelInfo, ModelProvider, ModelRef, ModelReply, Prompt, PromptMessage, ProviderError,
    StreamDelta, TokenUsage,
};
use polyclaw_domain::tool::ToolCall;
use tokio::sync::Semaphore;

use crate::ports::lock;

/// One step of a scripted model.
#[derive(Clone)]
pub enum ScriptStep {
    Say(String),
    Call(String, serde_json::Value),
    Pause(Duration),
    /// Waits until a test opens it.
    Gate(Arc<Semaphore>),
    /// Another model starts over; earlier text is discarded.
    Restart,
    Fail(ProviderError),
    Hang,
}

pub type ModelScript = Vec<ScriptStep>;

type ScriptAuthor = dyn Fn(&Prompt) -> ModelScript + Send + Sync;

pub struct ScriptedProvider {
    author: Box<ScriptAuthor>,
    prompts: Mutex<Vec<Prompt>>,
}

impl ScriptedProvider {
    pub fn new(author: impl Fn(&Prompt) -> ModelScript + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { author: Box::new(author), prompts: Mutex::default() })
    }

    /// Repeats the user's last text.
    pub fn echo() -> Arc<Self> {
        Self::new(|prompt| vec![ScriptStep::Say(format!("echo: {}", last_user_text(prompt)))])
    }

    /// Returns every prompt it received, oldest first.
    pub fn prompts(&self) -> Vec<Prompt> {
        lock(&self.prompts).clone()
    }
}

/// Returns the newest user text, without the author mark.
pub fn last_user_text(prompt: &Prompt) -> &str {
    let texts = prompt.messages.iter().rev().find_map(|message| match message {
        PromptMessage::User { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.unwrap_or_default();
    match text.strip_prefix("<from-").and_then(|marked| marked.split_once("/>\n")) {
        Some((_, reply)) => reply,
        None => text,
    }
}

impl ModelProvider for ScriptedProvider {
    fn stream_reply<'a>(
        &'a self,
        candidates: &'a [ModelRef],
        prompt: &'a Prompt,
        sink: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        Box::pin(async move {
            lock(&self.prompts).push(prompt.clone());
            let mut reply = ModelReply {
                text: String::new(),
                calls: Vec::new(),
                usage: TokenUsage { input_tokens: Some(10), output_tokens: Some(5), cached_tokens: Some(0) },
                model: candidates[0].clone(),
                truncated: false,
            };
            for (n, line) in (self.author)(prompt).into_iter().enumerate() {
                perform_step(line, n, &mut reply, sink).await?;
            }
            Ok(reply)
        })
    }

    fn list_models(&self) -> BoxFuture<'_, Vec<ModelInfo>> {
        Box::pin(std::future::ready(Vec::new()))
    }
}

async fn perform_step(
    line: ScriptStep,
    n: usize,
    reply: &mut ModelReply,
    sink: DeltaSink<'_>,
) -> Result<(), ProviderError> {
    match line {
        ScriptStep::Say(text) => {
            reply.text.push_str(&text);
            sink(StreamDelta::Text(text));
        }
        ScriptStep::Call(name, arguments) => {
            reply.calls.push(ToolCall { id: format!("c{n}"), name, arguments });
        }
        ScriptStep::Pause(pause) => tokio::time::sleep(pause).await,
        ScriptStep::Gate(gate) => {
            if let Ok(permit) = gate.acquire().await {
                permit.forget();
            }
        }
        ScriptStep::Restart => {
            reply.text.clear();
            sink(StreamDelta::Restart);
        }
        ScriptStep::Fail(error) => return Err(error),
        ScriptStep::Hang => std::future::pending().await,
    }
    Ok(())
}
