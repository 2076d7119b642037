//! Provider settings as plain values. Reading files and resolving secrets is up to the caller.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::embedded::EmbeddedChat;
use crate::error::Error;

#[derive(Clone, Default)]
pub struct ModelProvidersSettings {
    pub providers: Vec<ProviderSettings>,
    /// The model inside the program, if its weights are installed. Shared, so that a config reload keeps it loaded.
    pub embedded: Option<Arc<EmbeddedChat>>,
}

#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// The part of a model reference before the slash.
    pub name: String,
    pub kind: ProviderVendor,
    /// `None`: the provider's official URL.
    pub base_url: Option<String>,
    pub api_key: Option<ApiKey>,
    /// Models to list. If empty, a server that can list its models is asked.
    pub models: Vec<String>,
    /// How long a model may be silent before the next candidate is tried. Without another candidate, the caller
    /// decides.
    pub first_token_timeout: Duration,
    /// Whether its models accept images.
    pub images: bool,
}

impl ProviderSettings {
    /// Long enough for a reasoning model, and short enough for two silent models before a turn counts as stalled.
    pub const DEFAULT_FIRST_TOKEN_TIMEOUT: Duration = Duration::from_secs(45);

    pub fn new(name: impl Into<String>, kind: ProviderVendor) -> Self {
        Self {
            name: name.into(),
            kind,
            base_url: None,
            api_key: None,
            models: Vec::new(),
            first_token_timeout: Self::DEFAULT_FIRST_TOKEN_TIMEOUT,
            images: true,
        }
    }

    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(ApiKey::new(key));
        self
    }

    pub fn models<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.models = names.into_iter().map(Into::into).collect();
        self
    }
}

/// An API key that is not shown in logs or errors.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProviderVendor {
    OpenAi,
    Anthropic,
    Gemini,
    Ollama,
    OpenRouter,
    Groq,
    DeepSeek,
    Xai,
    Mistral,
    /// Any server with OpenAI's chat completions API; the key is optional.
    OpenAiCompatible,
}

impl ProviderVendor {
    pub const ALL: [Self; 10] = [
        Self::OpenAi,
        Self::Anthropic,
        Self::Gemini,
        Self::Ollama,
        Self::OpenRouter,
        Self::Groq,
        Self::DeepSeek,
        Self::Xai,
        Self::Mistral,
        Self::OpenAiCompatible,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::OpenRouter => "openrouter",
            Self::Groq => "groq",
            Self::DeepSeek => "deepseek",
            Self::Xai => "xai",
            Self::Mistral => "mistral",
            Self::OpenAiCompatible => "openai_compatible",
        }
    }

    /// Returns the provider's official URL.
    pub(crate) fn official_url(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("https://api.openai.com/v1/"),
            Self::Anthropic => Some("https://api.anthropic.com/v1/"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com/v1beta/"),
            Self::Ollama => Some("http://127.0.0.1:11434/v1/"),
            Self::OpenRouter => Some("https://openrouter.ai/api/v1/"),
            Self::Groq => Some("https://api.groq.com/openai/v1/"),
            Self::DeepSeek => Some("https://api.deepseek.com/v1/"),
            Self::Xai => Some("https://api.x.ai/v1/"),
            Self::Mistral => Some("https://api.mistral.ai/v1/"),
            Self::OpenAiCompatible => None,
        }
    }

    pub(crate) fn key_is_optional(self) -> bool {
        matches!(self, Self::Ollama | Self::OpenAiCompatible)
    }
}

impl FromStr for ProviderVendor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| Error::Kind(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_key_is_hidden_in_debug_output() {
        let settings = ProviderSettings::new("openai", ProviderVendor::OpenAi).api_key("sk-secret");
        assert!(!format!("{settings:?}").contains("sk-secret"));
    }

    #[test]
    fn provider_vendors_parse_by_name() {
        for kind in ProviderVendor::ALL {
            assert_eq!(kind.as_str().parse::<ProviderVendor>().unwrap(), kind);
        }
        assert_eq!("clippy".parse::<ProviderVendor>().unwrap_err().code(), "provider_kind");
    }
}
