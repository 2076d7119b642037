//! Chooses the providers and the model: from the config, else from keys in the environment, else from a local server,
//! else the built-in model. Explains the choice, or says what to set.

use std::time::Duration;

use polyclaw_domain::config::{self, Config, ProviderKind};
use polyclaw_domain::provider::ModelRef;
use polyclaw_provider::detect::{self, DetectedProvider, DetectionSource};
use polyclaw_provider::{ProviderSettings, ProviderVendor, embedded};

use crate::weights::{CHAT_WEIGHTS, ModelDir};

#[derive(Clone, Debug)]
pub struct ModelSelection {
    pub providers: Vec<ProviderSettings>,
    pub model: Option<ModelRef>,
    /// Where the model was found, for people.
    pub source: String,
}

/// Text that is shown wherever the embedded model is mentioned.
pub const DEMO_MODEL_NOTICE: &str = "a built-in demo model, which is tiny and often wrong. For real work \
    set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY and restart, or start Ollama, llama.cpp or \
    LM Studio on this machine";

pub const NO_MODEL_HINT: &str = "No model is configured. Set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or \
    OPENROUTER_API_KEY and restart, start Ollama, llama.cpp or LM Studio on this machine, or write [providers.…] \
    and [agents.defaults] model = \"provider/model\" in config.toml. `polyclaw model pull smollm2-135m` downloads a \
    small demo model (98 MB) that runs inside Polyclaw.";

impl ModelSelection {
    /// Selects what is known without network access.
    pub fn from_config(config: &Config, variable: impl Fn(&str) -> Option<String>) -> Self {
        let model = config.agents.defaults.model.as_ref().map(|choice| choice.model.clone());
        if !config.providers.is_empty() {
            let listed = model.clone().or_else(|| first_listed(config));
            let providers = before_stall(configured_providers(config), config);
            return Self { providers, model: listed, source: "config.toml".to_owned() };
        }
        let found = from_environment(&variable);
        let source = match (&model, found.first()) {
            (Some(_), _) => "config.toml".to_owned(),
            (None, Some(first)) => describe_source(&first.source),
            (None, None) => String::new(),
        };
        let chosen = model.clone().or_else(|| found.first().map(|first| first.model.clone()));
        let mut providers: Vec<_> = found.into_iter().map(|found| found.provider).collect();
        providers.extend(implied_provider(model.as_ref(), &providers));
        Self { providers: before_stall(providers, config), model: chosen, source }
    }

    /// Probes the usual local model servers. If none answers, selects the built-in model, provided its weights are
    /// present.
    pub async fn search_local_servers(&mut self, models: &ModelDir) -> bool {
        if let Some(found) = detect::from_servers(detect::LocalServerPorts::default()).await {
            self.source = describe_source(&found.source);
            self.model = Some(found.model);
            self.providers.push(found.provider);
        } else if models.is_present(&CHAT_WEIGHTS) {
            self.model = Some(embedded::chat_model());
        }
        self.model.is_some()
    }

    pub fn is_demo(&self) -> bool {
        self.model.as_ref().is_some_and(|model| *model == embedded::chat_model())
    }

    /// Describes in a sentence the model in use, or what to set.
    pub fn describe_selection(&self) -> String {
        match &self.model {
            Some(model) if self.is_demo() => format!("{model}, {DEMO_MODEL_NOTICE}"),
            Some(model) => format!("{model} (from {})", self.source),
            None if self.providers.is_empty() => NO_MODEL_HINT.to_owned(),
            None => self.name_model_hint(),
        }
    }

    fn name_model_hint(&self) -> String {
        let provider = self.providers.first().map_or("provider", |provider| provider.name.as_str());
        format!("No model is set. Write [agents.defaults] model = \"{provider}/<model>\" in config.toml.")
    }
}

/// Limits the first-token timeout to half of the stall timeout. A stalled turn ends without a fallback, so a silent
/// model must be given up while there is time for another.
fn before_stall(mut providers: Vec<ProviderSettings>, config: &Config) -> Vec<ProviderSettings> {
    let stall = Duration::from_secs(config.turns.stall_seconds.into());
    for provider in &mut providers {
        provider.first_token_timeout = provider.first_token_timeout.min(stall / 2);
    }
    providers
}

/// Returns a provider for a model whose server needs no key, so `model = "ollama/llama3"` needs no provider section.
fn implied_provider(model: Option<&ModelRef>, found: &[ProviderSettings]) -> Option<ProviderSettings> {
    let name = &model?.provider;
    let kind = name.parse::<ProviderVendor>().ok().filter(|kind| *kind == ProviderVendor::Ollama)?;
    found.iter().all(|provider| provider.name != *name).then(|| ProviderSettings::new(name, kind))
}

/// Finds every key in the environment, in order of preference.
fn from_environment(variable: &impl Fn(&str) -> Option<String>) -> Vec<DetectedProvider> {
    let mut found: Vec<DetectedProvider> = Vec::new();
    loop {
        let seen = |name: &str| {
            found.iter().any(|one| matches!(one.source, DetectionSource::Environment(known) if known == name))
        };
        match detect::from_environment(|name| if seen(name) { None } else { variable(name) }) {
            Some(next) => found.push(next),
            None => return found,
        }
    }
}

fn first_listed(config: &Config) -> Option<ModelRef> {
    config.providers.iter().find_map(|(name, provider)| {
        Some(ModelRef { provider: name.clone(), model: provider.models.first()?.clone() })
    })
}

fn configured_providers(config: &Config) -> Vec<ProviderSettings> {
    config.providers.iter().filter_map(|(name, provider)| provider_settings(name, provider)).collect()
}

fn provider_settings(name: &str, provider: &config::ProviderConfig) -> Option<ProviderSettings> {
    let mut settings = ProviderSettings::new(name, provider_kind(provider.resolve_kind(name)?));
    settings.base_url.clone_from(&provider.base_url);
    settings.models.clone_from(&provider.models);
    if let Some(seconds) = provider.first_token_seconds {
        settings.first_token_timeout = Duration::from_secs(seconds.into());
    }
    settings.images = provider.images.unwrap_or(true);
    Some(match &provider.api_key {
        Some(key) => settings.api_key(key.expose()),
        None => settings,
    })
}

fn provider_kind(kind: ProviderKind) -> ProviderVendor {
    match kind {
        ProviderKind::Openai => ProviderVendor::OpenAi,
        ProviderKind::Anthropic => ProviderVendor::Anthropic,
        ProviderKind::Gemini => ProviderVendor::Gemini,
        ProviderKind::Ollama => ProviderVendor::Ollama,
        ProviderKind::Openrouter => ProviderVendor::OpenRouter,
        ProviderKind::Groq => ProviderVendor::Groq,
        ProviderKind::Deepseek => ProviderVendor::DeepSeek,
        ProviderKind::Xai => ProviderVendor::Xai,
        ProviderKind::Mistral => ProviderVendor::Mistral,
        ProviderKind::OpenaiCompatible => ProviderVendor::OpenAiCompatible,
    }
}

fn describe_source(source: &DetectionSource) -> String {
    match source {
        DetectionSource::Environment(name) => (*name).to_owned(),
        DetectionSource::Server { name, url } => format!("{name} at {url}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(toml: &str, keys: &[&str]) -> ModelSelection {
        let config = config::load(toml, "config.toml", &|_| Err("is not set".to_owned())).unwrap();
        ModelSelection::from_config(&config, |name| keys.contains(&name).then(|| "key".to_owned()))
    }

    fn names(choice: &ModelSelection) -> Vec<&str> {
        choice.providers.iter().map(|provider| provider.name.as_str()).collect()
    }

    #[test]
    fn environment_keys_become_providers_and_first_is_selected() {
        let choice = choose("", &["GROQ_API_KEY", "OPENAI_API_KEY"]);
        assert_eq!(names(&choice), ["openai", "groq"]);
        assert!(
            choice.describe_selection().starts_with("openai/")
                && choice.describe_selection().ends_with("(from OPENAI_API_KEY)")
        );
    }

    #[test]
    fn config_providers_take_precedence_over_environment_keys() {
        let toml =
            "[providers.lab]\nkind = \"openai_compatible\"\nbase_url = \"http://h/v1\"\nmodels = [\"m\"]\n";
        let choice = choose(toml, &["OPENAI_API_KEY"]);
        assert_eq!(names(&choice), ["lab"]);
        assert_eq!(choice.describe_selection(), "lab/m (from config.toml)");
    }

    #[test]
    fn first_token_timeout_follows_config_and_stall_limit() {
        let lab = "[providers.lab]\nkind = \"openai_compatible\"\nbase_url = \"http://h/v1\"\n";
        let timeout_of = |toml: &str| choose(toml, &[]).providers[0].first_token_timeout.as_secs();
        assert_eq!(timeout_of(lab), 45);
        assert_eq!(timeout_of(&format!("{lab}first_token_seconds = 9\n")), 9);
        let hasty = "[turns]\nstall_seconds = 30\n";
        assert_eq!(timeout_of(&format!("{lab}{hasty}")), 15, "another model is tried before the turn stalls");
        assert_eq!(timeout_of(&format!("{lab}first_token_seconds = 9\n{hasty}")), 9);
    }

    #[test]
    fn named_model_uses_the_key_of_its_provider() {
        let choice = choose("[agents.defaults]\nmodel = \"groq/x\"\n", &["GROQ_API_KEY", "OPENAI_API_KEY"]);
        assert_eq!(names(&choice), ["openai", "groq"]);
        assert_eq!(choice.describe_selection(), "groq/x (from config.toml)");
        let local = choose("[agents.defaults]\nmodel = \"ollama/llama3\"\n", &[]);
        assert_eq!(names(&local), ["ollama"]);
    }

    #[test]
    fn missing_model_names_the_setting_to_add() {
        assert!(choose("", &[]).describe_selection().contains("OPENAI_API_KEY"));
        let unnamed = choose("[providers.openai]\napi_key = \"k\"\n", &[]);
        assert!(unnamed.describe_selection().contains("model = \"openai/<model>\""));
    }
}
