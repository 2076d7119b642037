//! Finds a model on a machine where nobody configured one: keys in the environment, then local servers.

use std::time::Duration;

use futures_util::future::join_all;
use polyclaw_domain::provider::ModelRef;
use reqwest::Url;

use crate::catalog::{Listed, Protocol};
use crate::http;
use crate::settings::{Kind, ProviderSettings};

const CONNECT: Duration = Duration::from_millis(200);

/// A server that is busy loading a model may need a moment to list its models.
const TOTAL: Duration = Duration::from_secs(1);

/// In the order in which they are preferred, each with the model to begin with: small, current, able to use tools.
const KEYS: [(&str, Kind, &str); 8] = [
    ("ANTHROPIC_API_KEY", Kind::Anthropic, "claude-haiku-4-5"),
    ("OPENAI_API_KEY", Kind::OpenAi, "gpt-5.4-mini"),
    ("GEMINI_API_KEY", Kind::Gemini, "gemini-flash-latest"),
    ("OPENROUTER_API_KEY", Kind::OpenRouter, "openai/gpt-5.4-mini"),
    ("GROQ_API_KEY", Kind::Groq, "openai/gpt-oss-20b"),
    ("DEEPSEEK_API_KEY", Kind::DeepSeek, "deepseek-chat"),
    ("XAI_API_KEY", Kind::Xai, "grok-4-fast"),
    ("MISTRAL_API_KEY", Kind::Mistral, "mistral-small-latest"),
];

/// What to answer with, and where it was found.
#[derive(Clone, Debug)]
pub struct Found {
    pub provider: ProviderSettings,
    pub model: ModelRef,
    pub source: Source,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The environment variable that held the key.
    Environment(&'static str),
    /// The local server's name and address.
    Server { name: &'static str, url: String },
}

/// Where local servers listen.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    pub ollama: u16,
    pub llama_cpp: u16,
    pub lm_studio: u16,
}

impl Default for Ports {
    fn default() -> Self {
        Self { ollama: 11434, llama_cpp: 8080, lm_studio: 1234 }
    }
}

/// The environment comes in as a function, so that tests have their own.
pub async fn detect(variable: impl Fn(&str) -> Option<String>, ports: Ports) -> Option<Found> {
    match from_environment(variable) {
        Some(found) => Some(found),
        None => from_servers(ports).await,
    }
}

pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Found> {
    KEYS.into_iter().find_map(|(name, kind, model)| {
        let key = variable(name).map(|key| key.trim().to_owned()).filter(|key| !key.is_empty())?;
        let provider = ProviderSettings::new(kind.as_str(), kind).api_key(key).models([model]);
        let model = ModelRef { provider: kind.as_str().to_owned(), model: model.to_owned() };
        Some(Found { provider, model, source: Source::Environment(name) })
    })
}

/// Asks all ports at once; the order below decides between several that answer.
pub async fn from_servers(ports: Ports) -> Option<Found> {
    let client = http::probe(CONNECT, TOTAL).ok()?;
    let servers = [
        Server { name: "ollama", port: ports.ollama, protocol: Protocol::Ollama },
        Server { name: "llama_cpp", port: ports.llama_cpp, protocol: Protocol::OpenAi },
        Server { name: "lm_studio", port: ports.lm_studio, protocol: Protocol::OpenAi },
    ];
    join_all(servers.iter().map(|server| server.probe(&client))).await.into_iter().flatten().next()
}

struct Server {
    name: &'static str,
    port: u16,
    protocol: Protocol,
}

impl Server {
    /// A server without a model to chat with is of no use here, and any other program on the port lists none.
    async fn probe(&self, client: &reqwest::Client) -> Option<Found> {
        let base = Url::parse(&format!("http://127.0.0.1:{}/v1/", self.port)).ok()?;
        let listed = self.protocol.read(client.get(self.protocol.url(&base)?)).await?;
        let model = listed.into_iter().find(can_chat)?;
        let kind = match self.protocol {
            Protocol::Ollama => Kind::Ollama,
            Protocol::OpenAi => Kind::OpenAiCompatible,
        };
        Some(Found {
            provider: ProviderSettings::new(self.name, kind).base_url(base.as_str()),
            model: ModelRef { provider: self.name.to_owned(), model: model.name },
            source: Source::Server { name: self.name, url: base.to_string() },
        })
    }
}

/// Embedding models stand in the same lists.
fn can_chat(model: &Listed) -> bool {
    !model.name.is_empty() && !model.name.to_lowercase().contains("embed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(name: &'static str, value: &'static str) -> impl Fn(&str) -> Option<String> {
        move |asked| (asked == name).then(|| value.to_owned())
    }

    #[test]
    fn each_key_picks_its_provider() {
        for (name, kind, model) in KEYS {
            let found = from_environment(only(name, "k")).unwrap();
            assert_eq!((found.provider.kind, found.model.model.as_str()), (kind, model));
            assert_eq!(found.source, Source::Environment(name));
        }
    }

    #[test]
    fn an_empty_key_is_no_key() {
        assert!(from_environment(only("OPENAI_API_KEY", " ")).is_none());
    }

    #[test]
    fn of_several_keys_the_first_in_our_order_wins() {
        let found = from_environment(|_| Some("k".to_owned())).unwrap();
        assert_eq!(found.model.to_string(), "anthropic/claude-haiku-4-5");
    }
}
