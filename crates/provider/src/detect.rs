//! Finds a model on a machine without configuration: API keys in the environment first, then local servers.

use std::time::Duration;

use futures_util::future::join_all;
use polyclaw_domain::provider::ModelRef;
use reqwest::Url;

use crate::catalog::{ListedModel, ListingProtocol};
use crate::http;
use crate::settings::{ProviderSettings, ProviderVendor};

const PROBE_CONNECT_TIMEOUT: Duration = Duration::from_millis(200);

/// A server that is loading a model may be slow to list its models.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// In order of preference, each with the default model: small, current and able to use tools.
const ENVIRONMENT_KEYS: [(&str, ProviderVendor, &str); 8] = [
    ("ANTHROPIC_API_KEY", ProviderVendor::Anthropic, "claude-haiku-4-5"),
    ("OPENAI_API_KEY", ProviderVendor::OpenAi, "gpt-5.4-mini"),
    ("GEMINI_API_KEY", ProviderVendor::Gemini, "gemini-flash-latest"),
    ("OPENROUTER_API_KEY", ProviderVendor::OpenRouter, "openai/gpt-5.4-mini"),
    ("GROQ_API_KEY", ProviderVendor::Groq, "openai/gpt-oss-20b"),
    ("DEEPSEEK_API_KEY", ProviderVendor::DeepSeek, "deepseek-chat"),
    ("XAI_API_KEY", ProviderVendor::Xai, "grok-4-fast"),
    ("MISTRAL_API_KEY", ProviderVendor::Mistral, "mistral-small-latest"),
];

/// The detected provider and model, and their source.
#[derive(Clone, Debug)]
pub struct DetectedProvider {
    pub provider: ProviderSettings,
    pub model: ModelRef,
    pub source: DetectionSource,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DetectionSource {
    /// The environment variable with the key.
    Environment(&'static str),
    /// Name and URL of the local server.
    Server { name: &'static str, url: String },
}

/// Default ports of local servers.
#[derive(Clone, Copy, Debug)]
pub struct LocalServerPorts {
    pub ollama: u16,
    pub llama_cpp: u16,
    pub lm_studio: u16,
}

impl Default for LocalServerPorts {
    fn default() -> Self {
        Self { ollama: 11434, llama_cpp: 8080, lm_studio: 1234 }
    }
}

/// Looks in the environment first, then on local ports. `variable` reads the environment, so that tests can replace it.
pub async fn detect_provider(
    variable: impl Fn(&str) -> Option<String>,
    ports: LocalServerPorts,
) -> Option<DetectedProvider> {
    match from_environment(variable) {
        Some(found) => Some(found),
        None => from_servers(ports).await,
    }
}

pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Option<DetectedProvider> {
    ENVIRONMENT_KEYS.into_iter().find_map(|(name, kind, model)| {
        let key = variable(name).map(|key| key.trim().to_owned()).filter(|key| !key.is_empty())?;
        let provider = ProviderSettings::new(kind.as_str(), kind).api_key(key).models([model]);
        let model = ModelRef { provider: kind.as_str().to_owned(), model: model.to_owned() };
        Some(DetectedProvider { provider, model, source: DetectionSource::Environment(name) })
    })
}

/// Probes all ports concurrently. If several answer, the order of the list decides.
pub async fn from_servers(ports: LocalServerPorts) -> Option<DetectedProvider> {
    let client = http::probe_client(PROBE_CONNECT_TIMEOUT, PROBE_TIMEOUT).ok()?;
    let servers = [
        LocalServer { name: "ollama", port: ports.ollama, protocol: ListingProtocol::Ollama },
        LocalServer { name: "llama_cpp", port: ports.llama_cpp, protocol: ListingProtocol::OpenAi },
        LocalServer { name: "lm_studio", port: ports.lm_studio, protocol: ListingProtocol::OpenAi },
    ];
    join_all(servers.iter().map(|server| server.probe_server(&client))).await.into_iter().flatten().next()
}

struct LocalServer {
    name: &'static str,
    port: u16,
    protocol: ListingProtocol,
}

impl LocalServer {
    /// Returns `None` if the server has no chat model or is another program.
    async fn probe_server(&self, client: &reqwest::Client) -> Option<DetectedProvider> {
        let base = Url::parse(&format!("http://127.0.0.1:{}/v1/", self.port)).ok()?;
        let listed = self.protocol.read_models(client.get(self.protocol.list_url(&base)?)).await?;
        let model = listed.into_iter().find(can_chat)?;
        let kind = match self.protocol {
            ListingProtocol::Ollama => ProviderVendor::Ollama,
            ListingProtocol::OpenAi => ProviderVendor::OpenAiCompatible,
        };
        Some(DetectedProvider {
            provider: ProviderSettings::new(self.name, kind).base_url(base.as_str()),
            model: ModelRef { provider: self.name.to_owned(), model: model.name },
            source: DetectionSource::Server { name: self.name, url: base.to_string() },
        })
    }
}

/// Embedding models are in the same lists.
fn can_chat(model: &ListedModel) -> bool {
    !model.name.is_empty() && !model.name.to_lowercase().contains("embed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(name: &'static str, value: &'static str) -> impl Fn(&str) -> Option<String> {
        move |asked| (asked == name).then(|| value.to_owned())
    }

    #[test]
    fn each_environment_key_selects_its_provider() {
        for (name, kind, model) in ENVIRONMENT_KEYS {
            let found = from_environment(only(name, "k")).unwrap();
            assert_eq!((found.provider.kind, found.model.model.as_str()), (kind, model));
            assert_eq!(found.source, DetectionSource::Environment(name));
        }
    }

    #[test]
    fn empty_environment_key_is_ignored() {
        assert!(from_environment(only("OPENAI_API_KEY", " ")).is_none());
    }

    #[test]
    fn first_of_several_environment_keys_wins() {
        let found = from_environment(|_| Some("k".to_owned())).unwrap();
        assert_eq!(found.model.to_string(), "anthropic/claude-haiku-4-5");
    }
}
