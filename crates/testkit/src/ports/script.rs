//! A model inside the process: a function from what it is shown to what it says.

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

/// One thing a scripted model does.
#[derive(Clone)]
pub enum Line {
    Say(String),
    Call(String, serde_json::Value),
    Pause(Duration),
    /// Waits until a test opens it.
    Gate(Arc<Semaphore>),
    /// Another model begins again; what was said no longer counts.
    Restart,
    Fail(ProviderError),
    Hang,
}

pub type Script = Vec<Line>;

type Author = dyn Fn(&Prompt) -> Script + Send + Sync;

pub struct Scripted {
    author: Box<Author>,
    prompts: Mutex<Vec<Prompt>>,
}

impl Scripted {
    pub fn new(author: impl Fn(&Prompt) -> Script + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { author: Box::new(author), prompts: Mutex::default() })
    }

    /// Says back what the user said last.
    pub fn echo() -> Arc<Self> {
        Self::new(|prompt| vec![Line::Say(format!("echo: {}", last_user(prompt)))])
    }

    /// Every prompt it was shown, oldest first.
    pub fn prompts(&self) -> Vec<Prompt> {
        lock(&self.prompts).clone()
    }
}

/// The newest thing a user role said, without who said it.
pub fn last_user(prompt: &Prompt) -> &str {
    let texts = prompt.messages.iter().rev().find_map(|message| match message {
        PromptMessage::User { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.unwrap_or_default();
    match text.strip_prefix("<from-").and_then(|marked| marked.split_once("/>\n")) {
        Some((_, said)) => said,
        None => text,
    }
}

impl ModelProvider for Scripted {
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
                perform(line, n, &mut reply, sink).await?;
            }
            Ok(reply)
        })
    }

    fn list_models(&self) -> BoxFuture<'_, Vec<ModelInfo>> {
        Box::pin(std::future::ready(Vec::new()))
    }
}

async fn perform(
    line: Line,
    n: usize,
    reply: &mut ModelReply,
    sink: DeltaSink<'_>,
) -> Result<(), ProviderError> {
    match line {
        Line::Say(text) => {
            reply.text.push_str(&text);
            sink(StreamDelta::Text(text));
        }
        Line::Call(name, arguments) => reply.calls.push(ToolCall { id: format!("c{n}"), name, arguments }),
        Line::Pause(pause) => tokio::time::sleep(pause).await,
        Line::Gate(gate) => {
            if let Ok(permit) = gate.acquire().await {
                permit.forget();
            }
        }
        Line::Restart => {
            reply.text.clear();
            sink(StreamDelta::Restart);
        }
        Line::Fail(error) => return Err(error),
        Line::Hang => std::future::pending().await,
    }
    Ok(())
}
