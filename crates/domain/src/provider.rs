//! Models: names, prompts, replies and errors.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::media::Image;
use crate::port::BoxFuture;
use crate::tool::{ToolCall, ToolSpec};

/// `provider/model`; the model's own name may contain more slashes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModelRef {
    pub provider: String,
    pub model: String,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("'{0}' is not a model: use provider/model, for example openai/gpt-5-mini")]
pub struct InvalidModelRef(pub String);

impl ModelRef {
    pub fn parse(text: &str) -> Result<Self, InvalidModelRef> {
        match text.trim().split_once('/') {
            Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
                Ok(Self { provider: provider.to_owned(), model: model.to_owned() })
            }
            _ => Err(InvalidModelRef(text.to_owned())),
        }
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

impl Serialize for ModelRef {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ModelRef {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for ModelRef {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ModelRef".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[^/]+/.+$", "description": "provider/model" })
    }
}

/// The input of one model call. Rendered for every call, never stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    pub system: String,
    pub messages: Vec<PromptMessage>,
    pub tools: Vec<Arc<ToolSpec>>,
    pub temperature: Option<f64>,
    pub max_tokens: Option<u32>,
    pub reasoning_effort: Option<ReasoningEffort>,
}

/// How much a model reasons before it answers, if it supports that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningEffort {
    Low,
    Medium,
    High,
}

impl ReasoningEffort {
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.as_str() == text)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum PromptMessage {
    User { text: String, images: Vec<Image> },
    Assistant { text: String, calls: Vec<ToolCall> },
    ToolResult { call_id: String, name: String, content: String, is_error: bool },
}

impl PromptMessage {
    /// Returns a user message without images.
    pub fn user_text(text: impl Into<String>) -> Self {
        Self::User { text: text.into(), images: Vec::new() }
    }

    pub fn images(&self) -> &[Image] {
        match self {
            Self::User { images, .. } => images,
            _ => &[],
        }
    }
}

impl Prompt {
    pub fn has_images(&self) -> bool {
        self.messages.iter().any(|message| !message.images().is_empty())
    }

    /// Returns the prompt for a model without vision. Notes replace the images.
    pub fn without_images(&self) -> Self {
        let mut prompt = self.clone();
        for message in &mut prompt.messages {
            if let PromptMessage::User { text, images } = message
                && !images.is_empty()
            {
                text.push_str(&format!(
                    "\n[{} attached here that you cannot see]",
                    images_phrase(images.len())
                ));
                images.clear();
            }
        }
        prompt
    }
}

fn images_phrase(images: usize) -> String {
    match images {
        1 => "an image is".to_owned(),
        _ => format!("{images} images are"),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamDelta {
    Text(String),
    Reasoning(String),
    /// A fallback model starts over: discard the text streamed so far.
    Restart,
}

/// Token counts as the provider reported them. Missing values are `None`, never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TokenUsage {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
}

impl TokenUsage {
    /// Adds two counts. The sum is known only if both parts are.
    pub fn plus(self, other: Self) -> Self {
        let add = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        Self {
            input_tokens: add(self.input_tokens, other.input_tokens),
            output_tokens: add(self.output_tokens, other.output_tokens),
            cached_tokens: add(self.cached_tokens, other.cached_tokens),
        }
    }

    pub const ZERO: Self = Self { input_tokens: Some(0), output_tokens: Some(0), cached_tokens: Some(0) };
}

#[derive(Clone, Debug, PartialEq)]
pub struct ModelReply {
    pub text: String,
    pub calls: Vec<ToolCall>,
    pub usage: TokenUsage,
    /// The model that answered, which may be a fallback.
    pub model: ModelRef,
    /// The model stopped at its token limit before it was done.
    pub truncated: bool,
}

impl ModelReply {
    /// Returns whether the reply has neither text nor calls.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.text.trim().is_empty()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    Auth,
    Quota,
    RateLimit,
    Overload,
    Timeout,
    BadRequest,
    ContextTooLong,
    /// The connection failed or broke.
    Unreachable,
    /// The answer could not be parsed.
    Malformed,
    /// The answer has neither text nor calls.
    Empty,
    /// This process has no free file descriptor for a connection.
    OutOfDescriptors,
    /// No such provider or model is configured.
    NotConfigured,
}

impl ErrorClass {
    /// Returns whether another model may succeed. An invalid request fails everywhere.
    pub fn may_try_next(self) -> bool {
        !matches!(self, Self::BadRequest | Self::ContextTooLong)
    }

    /// Returns whether a retry of the same call may succeed without any change.
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::Overload
                | Self::Timeout
                | Self::Unreachable
                | Self::Malformed
                | Self::Empty
                | Self::OutOfDescriptors
        )
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Quota => "quota",
            Self::RateLimit => "rate_limit",
            Self::Overload => "overload",
            Self::Timeout => "timeout",
            Self::BadRequest => "bad_request",
            Self::ContextTooLong => "context_too_long",
            Self::Unreachable => "unreachable",
            Self::Malformed => "malformed",
            Self::Empty => "empty",
            Self::OutOfDescriptors => "out_of_descriptors",
            Self::NotConfigured => "not_configured",
        }
    }
}

/// Why no model answered, in terms a person can act on. Never contains a key or a request body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{model}: {message}")]
pub struct ProviderError {
    pub class: ErrorClass,
    pub model: String,
    pub message: String,
    pub retry_after_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelInfo {
    pub model: ModelRef,
    /// Context window in tokens; `None` if unknown.
    pub context_window: Option<u64>,
    /// `ready`, `cooling` after an error, `unreachable`, or `damaged` if its weights cannot be loaded.
    pub status: ModelStatus,
    /// A demo model: its answers have the right shape and are often wrong.
    pub demo: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelStatus {
    Ready,
    Cooling,
    Unreachable,
    /// The weights of the embedded model cannot be loaded.
    Damaged,
}

pub type DeltaSink<'a> = &'a (dyn Fn(StreamDelta) + Send + Sync);

/// Calls models. `candidates` is the agent's model and its fallbacks: each is tried once, in order.
pub trait ModelProvider: Send + Sync {
    fn stream_reply<'a>(
        &'a self,
        candidates: &'a [ModelRef],
        prompt: &'a Prompt,
        sink: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>>;

    fn list_models(&self) -> BoxFuture<'_, Vec<ModelInfo>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_ref_keeps_slashes_of_model_name() {
        let model = ModelRef::parse("openrouter/meta/llama-3").unwrap();
        assert_eq!((model.provider.as_str(), model.model.as_str()), ("openrouter", "meta/llama-3"));
        assert!(
            ModelRef::parse("gpt").is_err()
                && ModelRef::parse("/x").is_err()
                && ModelRef::parse("x/").is_err()
        );
    }

    #[test]
    fn prompt_without_images_mentions_omitted_images() {
        let image = Image::from_bytes(crate::media::tests::PNG).unwrap();
        let shown = PromptMessage::User { text: "look".into(), images: vec![image.clone(), image] };
        let prompt = Prompt { messages: vec![PromptMessage::user_text("hi"), shown], ..Prompt::default() };
        let notice = prompt.without_images();
        assert!(prompt.has_images() && !notice.has_images());
        assert_eq!(notice.messages[0], PromptMessage::user_text("hi"));
        let words = "look\n[2 images are attached here that you cannot see]";
        assert_eq!(notice.messages[1], PromptMessage::user_text(words));
    }

    #[test]
    fn unknown_usage_stays_unknown_in_a_sum() {
        let known = TokenUsage { input_tokens: Some(2), output_tokens: Some(3), cached_tokens: None };
        let sum = TokenUsage::ZERO.plus(known).plus(known);
        assert_eq!(sum, TokenUsage { input_tokens: Some(4), output_tokens: Some(6), cached_tokens: None });
    }
}
