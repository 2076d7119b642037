//! `[providers.<name>]`: model providers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::key_names;
use super::report::ConfigReport;
use super::secret::Secret;
use crate::provider::ModelRef;

/// A model provider. Its name is the first part of a model's name: `<name>/<model>`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderConfig {
    /// The protocol. May be omitted if the provider's name is one of the kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ProviderKind>,
    /// The URL of the service, if not its default.
    #[schemars(url)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The API key, preferably as a reference: `env:OPENAI_API_KEY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Secret>,
    /// The models to offer, without the provider's name. If omitted, the service is asked for its models.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Timeout for the first token, in seconds, before the next of the `fallbacks` is tried. The last candidate may
    /// take as long as a turn may. Defaults to 45.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_token_seconds: Option<u32>,
    /// Whether its models accept images. With `false`, images are replaced by a note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    Openai,
    Anthropic,
    Gemini,
    Ollama,
    Openrouter,
    Groq,
    Deepseek,
    Xai,
    Mistral,
    /// Any other service with OpenAI's protocol, such as llama.cpp, LM Studio or vLLM. Needs `base_url`.
    OpenaiCompatible,
}

impl ProviderKind {
    const KIND_NAMES: [(&str, Self); 9] = [
        ("openai", Self::Openai),
        ("anthropic", Self::Anthropic),
        ("gemini", Self::Gemini),
        ("ollama", Self::Ollama),
        ("openrouter", Self::Openrouter),
        ("groq", Self::Groq),
        ("deepseek", Self::Deepseek),
        ("xai", Self::Xai),
        ("mistral", Self::Mistral),
    ];
}

impl ProviderConfig {
    /// Returns the configured kind, else the one the provider is named after.
    pub fn resolve_kind(&self, name: &str) -> Option<ProviderKind> {
        let named =
            || ProviderKind::KIND_NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, kind)| kind);
        self.kind.or_else(named)
    }

    fn report_errors(&self, own_name: &str, report: &mut ConfigReport) {
        let path = key_names::join_key("providers", own_name);
        if own_name.is_empty() || own_name.contains('/') || own_name.contains(char::is_whitespace) {
            report.add_error(
                &path,
                "a provider's name must not contain slashes or spaces",
                "it is the part before the first / of a model",
            );
        }
        match self.resolve_kind(own_name) {
            None => {
                let hint = r#"add one, like kind = "openai_compatible""#;
                report.add_error(
                    &path,
                    format!("{own_name:?} is not a known kind of provider, and kind is not set"),
                    hint,
                );
            }
            Some(ProviderKind::OpenaiCompatible) if self.base_url.is_none() => {
                let hint = r#"add it, like base_url = "http://127.0.0.1:8080/v1""#;
                report.add_error(
                    &path,
                    "base_url is missing, and openai_compatible has no default URL",
                    hint,
                );
            }
            Some(_) => {}
        }
    }
}

pub(super) fn check_providers(providers: &BTreeMap<String, ProviderConfig>, report: &mut ConfigReport) {
    for (name, provider) in providers {
        provider.report_errors(name, report);
    }
}

/// The provider name of the embedded models.
pub(super) const EMBEDDED_PROVIDER: &str = "embedded";

/// Returns whether a provider can exist without a section: by an API key in the environment, as a local server, or
/// embedded.
pub(super) fn needs_no_section(name: &str) -> bool {
    name == EMBEDDED_PROVIDER || ProviderKind::KIND_NAMES.iter().any(|(known, _)| *known == name)
}

/// Reports a model whose provider is not configured and so can never answer. Without any provider section, providers
/// are detected at startup and nothing is reported.
pub(super) fn check_model(
    model: &ModelRef,
    path: &str,
    providers: &BTreeMap<String, ProviderConfig>,
    report: &mut ConfigReport,
) {
    // The embedded model needs no section.
    if providers.is_empty() || providers.contains_key(&model.provider) || model.provider == EMBEDDED_PROVIDER
    {
        return;
    }
    let names: Vec<&str> = providers.keys().take(key_names::MAX_COMPARED).map(String::as_str).collect();
    let message = format!("{model} uses provider {:?}, which is not configured", model.provider);
    report.add_error(path, message, key_names::suggest_word(&model.provider, &names));
}
