//! Providers and models.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::notes::Notes;
use super::part::Part;
use super::put;
use super::secrets::{Secrets, without_password};
use crate::provider::ModelRef;

/// Providers that are known by name there, what we call them, and where their keys usually are.
const KNOWN: [(&str, &str, &str); 11] = [
    ("openai", "openai", "OPENAI_API_KEY"),
    ("anthropic", "anthropic", "ANTHROPIC_API_KEY"),
    ("google", "gemini", "GEMINI_API_KEY"),
    ("google-generative-ai", "gemini", "GEMINI_API_KEY"),
    ("gemini", "gemini", "GEMINI_API_KEY"),
    ("ollama", "ollama", "OLLAMA_API_KEY"),
    ("openrouter", "openrouter", "OPENROUTER_API_KEY"),
    ("groq", "groq", "GROQ_API_KEY"),
    ("deepseek", "deepseek", "DEEPSEEK_API_KEY"),
    ("xai", "xai", "XAI_API_KEY"),
    ("mistral", "mistral", "MISTRAL_API_KEY"),
];

/// Protocols by the names they have there.
const PROTOCOLS: [(&str, &str); 5] = [
    ("openai-completions", "openai_compatible"),
    ("openai-responses", "openai_compatible"),
    ("anthropic-messages", "anthropic"),
    ("google-generative-ai", "gemini"),
    ("ollama", "ollama"),
];

#[derive(Default)]
pub(super) struct Models {
    providers: Map<String, Value>,
    models: Map<String, Value>,
    /// Short names of models.
    aliases: BTreeMap<String, String>,
    /// References that the usual variables give, by provider.
    keys: BTreeMap<String, String>,
}

impl Models {
    pub fn read(whole: &mut Part, secrets: &mut Secrets<'_>, notes: &mut Notes) -> Self {
        let mut read = Self::default();
        for (_, provider, variable) in KNOWN {
            if !read.keys.contains_key(provider)
                && let Some(reference) = secrets.usual(variable, notes)
            {
                read.keys.insert(provider.to_owned(), reference);
            }
        }
        let mut section = whole.part("models", notes);
        for (name, part) in section.part("providers", notes).parts(notes) {
            read.provider(&name, part, secrets, notes);
        }
        section.rest("providers are listed, and nothing else is set for all of them", notes);
        read
    }

    fn provider(&mut self, name: &str, mut part: Part, secrets: &mut Secrets<'_>, notes: &mut Notes) {
        let path = part.path().to_owned();
        let address =
            part.text("baseUrl", notes).map(|url| without_password(url, &part.at("baseUrl"), notes));
        let protocol = part.text("api", notes);
        let Some(kind) = kind_of(name, protocol.as_deref(), address.is_some()) else {
            notes.ignore(&path, "it speaks no protocol that is known here");
            return;
        };
        let key = part.take("apiKey").and_then(|key| secrets.reference(&part.at("apiKey"), &key, notes));
        let key = key.or_else(|| self.keys.get(kind).cloned());
        let listed = part.list("models", notes).unwrap_or_default();
        let mut provider = Map::new();
        put(&mut provider, "kind", kind);
        put(&mut provider, "base_url", address);
        put(&mut provider, "api_key", key);
        let ids = self.catalog(name, &format!("{path}.models"), listed, notes);
        put(&mut provider, "models", ids);
        self.providers.insert(name.to_owned(), Value::Object(provider));
        part.rest("a provider has a protocol, an address, a key and models", notes);
    }

    /// What is known about each model; the ids of all.
    fn catalog(&mut self, provider: &str, path: &str, listed: Vec<Value>, notes: &mut Notes) -> Vec<String> {
        let mut ids = Vec::new();
        for (at, item) in listed.into_iter().enumerate() {
            let mut part = Part::of(&format!("{path}[{at}]"), item, notes);
            let Some(id) = part.text("id", notes) else { continue };
            let mut model = Map::new();
            put(&mut model, "context_window", part.bounded("contextWindow", (1024, u64::MAX), notes));
            let mut cost = part.part("cost", notes);
            let price = |cost: &mut Part, key: &str| cost.take(key).filter(Value::is_number);
            if let (Some(input), Some(output)) = (price(&mut cost, "input"), price(&mut cost, "output")) {
                put(&mut model, "input_usd_per_million", input);
                put(&mut model, "output_usd_per_million", output);
                put(&mut model, "cached_usd_per_million", price(&mut cost, "cacheRead"));
            }
            cost.rest("a price needs input and output, and has no more than a cached one", notes);
            part.rest("of a model its window and its price are known", notes);
            if !model.is_empty() {
                self.models.insert(format!("{provider}/{id}"), Value::Object(model));
            }
            ids.push(id);
        }
        ids
    }

    /// A file of keys, one for each account at a provider.
    pub fn profiles(&mut self, mut file: Part, secrets: &mut Secrets<'_>, notes: &mut Notes) {
        for (_, mut part) in file.part("profiles", notes).parts(notes) {
            let (provider, key) =
                (part.text("provider", notes), part.take("key").or_else(|| part.take("token")));
            let at = part.at("key");
            match (provider.as_deref().and_then(|name| kind_of(name, None, false)), key) {
                (Some(kind), Some(key)) if !self.keys.contains_key(kind) => {
                    if let Some(reference) = secrets.reference(&at, &key, notes) {
                        self.keys.insert(kind.to_owned(), reference);
                    }
                }
                (Some(_), Some(_)) => notes.leave(&at, "its provider has another key already"),
                _ => notes.leave(part.path(), "it is not a key of a provider that is known here"),
            }
        }
    }

    pub fn alias(&mut self, name: String, model: String) {
        self.aliases.insert(name, model);
    }

    /// A model whose provider is there, or is added.
    pub fn resolve(&mut self, path: &str, text: &str, notes: &mut Notes) -> Option<String> {
        let full = self.aliases.get(text).cloned().unwrap_or_else(|| text.to_owned());
        let Ok(model) = ModelRef::parse(&full) else {
            notes.ignore(path, "it is not provider/model, nor a short name of one");
            return None;
        };
        if !self.providers.contains_key(&model.provider) {
            let Some(kind) = kind_of(&model.provider, None, false) else {
                notes.ignore(path, format!("the provider {:?} is not set up there", model.provider));
                return None;
            };
            self.providers.insert(model.provider.clone(), json!({ "kind": kind }));
        }
        Some(model.to_string())
    }

    pub fn write(mut self, config: &mut Map<String, Value>) {
        for provider in self.providers.values_mut() {
            let key = provider["kind"].as_str().and_then(|kind| self.keys.get(kind));
            if let (Some(key), None) = (key, provider.get("api_key")) {
                provider["api_key"] = json!(key);
            }
        }
        put(config, "providers", self.providers);
        put(config, "models", self.models);
    }
}

/// Which of our kinds a provider is.
fn kind_of(name: &str, protocol: Option<&str>, has_address: bool) -> Option<&'static str> {
    let known = KNOWN.iter().find(|(known, ..)| *known == name).map(|(_, kind, _)| *kind);
    let spoken =
        |protocol: &str| PROTOCOLS.iter().find(|(known, _)| *known == protocol).map(|(_, kind)| *kind);
    match protocol {
        _ if known.is_some() => known,
        Some(protocol) => spoken(protocol).filter(|kind| has_address || *kind != "openai_compatible"),
        None => has_address.then_some("openai_compatible"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Provider;

    #[test]
    fn every_kind_is_one_of_ours() {
        let named = KNOWN.iter().map(|(_, kind, _)| *kind).chain(PROTOCOLS.iter().map(|(_, kind)| *kind));
        for kind in named {
            let provider: Provider = serde_json::from_value(json!({ "kind": kind })).unwrap();
            assert!(provider.kind.is_some(), "{kind}");
        }
    }
}
