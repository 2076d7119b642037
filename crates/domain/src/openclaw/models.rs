//! Translates providers and models.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::insert_nonempty;
use super::notes::TranslationNotes;
use super::secrets::{SecretCollector, strip_credentials};
use super::source_table::SourceTable;
use crate::provider::ModelRef;

/// Known providers: their name there, our kind, and the usual variable of their key.
const KNOWN_PROVIDERS: [(&str, &str, &str); 11] = [
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

/// Protocols by their names in OpenClaw.
const PROTOCOLS: [(&str, &str); 5] = [
    ("openai-completions", "openai_compatible"),
    ("openai-responses", "openai_compatible"),
    ("anthropic-messages", "anthropic"),
    ("google-generative-ai", "gemini"),
    ("ollama", "ollama"),
];

#[derive(Default)]
pub(super) struct OpenclawModels {
    providers: Map<String, Value>,
    models: Map<String, Value>,
    /// Aliases of models.
    aliases: BTreeMap<String, String>,
    /// References to the usual environment variables, by provider.
    keys: BTreeMap<String, String>,
}

impl OpenclawModels {
    pub fn from_config(
        whole: &mut SourceTable,
        secrets: &mut SecretCollector<'_>,
        notes: &mut TranslationNotes,
    ) -> Self {
        let mut read = Self::default();
        for (_, provider, variable) in KNOWN_PROVIDERS {
            if !read.keys.contains_key(provider)
                && let Some(reference) = secrets.default_reference(variable, notes)
            {
                read.keys.insert(provider.to_owned(), reference);
            }
        }
        let mut section = whole.take_table("models", notes);
        for (name, part) in section.take_table("providers", notes).into_tables(notes) {
            read.add_provider(&name, part, secrets, notes);
        }
        section.note_rest("only the list of providers is supported", notes);
        read
    }

    fn add_provider(
        &mut self,
        name: &str,
        mut part: SourceTable,
        secrets: &mut SecretCollector<'_>,
        notes: &mut TranslationNotes,
    ) {
        let path = part.path().to_owned();
        let address = part
            .take_text("baseUrl", notes)
            .map(|url| strip_credentials(url, &part.key_path("baseUrl"), notes));
        let protocol = part.take_text("api", notes);
        let Some(kind) = provider_kind(name, protocol.as_deref(), address.is_some()) else {
            notes.note_ignored(&path, "its protocol is not supported");
            return;
        };
        let key = part
            .take_value("apiKey")
            .and_then(|key| secrets.translate_reference(&part.key_path("apiKey"), &key, notes));
        let key = key.or_else(|| self.keys.get(kind).cloned());
        let listed = part.take_list("models", notes).unwrap_or_default();
        let mut provider = Map::new();
        insert_nonempty(&mut provider, "kind", kind);
        insert_nonempty(&mut provider, "base_url", address);
        insert_nonempty(&mut provider, "api_key", key);
        let ids = self.add_models(name, &format!("{path}.models"), listed, notes);
        insert_nonempty(&mut provider, "models", ids);
        self.providers.insert(name.to_owned(), Value::Object(provider));
        part.note_rest("a provider has only a protocol, a URL, a key and models", notes);
    }

    /// Adds the properties of each model, and returns all ids.
    fn add_models(
        &mut self,
        provider: &str,
        path: &str,
        listed: Vec<Value>,
        notes: &mut TranslationNotes,
    ) -> Vec<String> {
        let mut ids = Vec::new();
        for (at, item) in listed.into_iter().enumerate() {
            let mut part = SourceTable::from_value(&format!("{path}[{at}]"), item, notes);
            let Some(id) = part.take_text("id", notes) else { continue };
            let mut model = Map::new();
            insert_nonempty(
                &mut model,
                "context_window",
                part.take_bounded("contextWindow", (1024, u64::MAX), notes),
            );
            let mut cost = part.take_table("cost", notes);
            let price = |cost: &mut SourceTable, key: &str| cost.take_value(key).filter(Value::is_number);
            if let (Some(input), Some(output)) = (price(&mut cost, "input"), price(&mut cost, "output")) {
                insert_nonempty(&mut model, "input_usd_per_million", input);
                insert_nonempty(&mut model, "output_usd_per_million", output);
                insert_nonempty(&mut model, "cached_usd_per_million", price(&mut cost, "cacheRead"));
            }
            cost.note_rest("a price has only input, output and cached input", notes);
            part.note_rest("a model has only a context window and a price", notes);
            if !model.is_empty() {
                self.models.insert(format!("{provider}/{id}"), Value::Object(model));
            }
            ids.push(id);
        }
        ids
    }

    /// Adds a key file, which has one profile per account at a provider.
    pub fn add_profiles(
        &mut self,
        mut file: SourceTable,
        secrets: &mut SecretCollector<'_>,
        notes: &mut TranslationNotes,
    ) {
        for (_, mut part) in file.take_table("profiles", notes).into_tables(notes) {
            let (provider, key) = (
                part.take_text("provider", notes),
                part.take_value("key").or_else(|| part.take_value("token")),
            );
            let at = part.key_path("key");
            match (provider.as_deref().and_then(|name| provider_kind(name, None, false)), key) {
                (Some(kind), Some(key)) if !self.keys.contains_key(kind) => {
                    if let Some(reference) = secrets.translate_reference(&at, &key, notes) {
                        self.keys.insert(kind.to_owned(), reference);
                    }
                }
                (Some(_), Some(_)) => notes.note_left_behind(&at, "its provider already has another key"),
                _ => notes.note_left_behind(part.path(), "it is not a key of a known provider"),
            }
        }
    }

    pub fn add_alias(&mut self, name: String, model: String) {
        self.aliases.insert(name, model);
    }

    /// Returns the full name of a model, and adds its provider if it is missing.
    pub fn resolve_model(&mut self, path: &str, text: &str, notes: &mut TranslationNotes) -> Option<String> {
        let full = self.aliases.get(text).cloned().unwrap_or_else(|| text.to_owned());
        let Ok(model) = ModelRef::parse(&full) else {
            notes.note_ignored(path, "it is neither provider/model nor a known short name");
            return None;
        };
        if !self.providers.contains_key(&model.provider) {
            let Some(kind) = provider_kind(&model.provider, None, false) else {
                notes
                    .note_ignored(path, format!("the provider {:?} is not configured there", model.provider));
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
        insert_nonempty(config, "providers", self.providers);
        insert_nonempty(config, "models", self.models);
    }
}

/// Returns our kind of a provider.
fn provider_kind(name: &str, protocol: Option<&str>, has_address: bool) -> Option<&'static str> {
    let known = KNOWN_PROVIDERS.iter().find(|(known, ..)| *known == name).map(|(_, kind, _)| *kind);
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
    use crate::config::ProviderConfig;

    #[test]
    fn every_translated_provider_kind_is_valid() {
        let named =
            KNOWN_PROVIDERS.iter().map(|(_, kind, _)| *kind).chain(PROTOCOLS.iter().map(|(_, kind)| *kind));
        for kind in named {
            let provider: ProviderConfig = serde_json::from_value(json!({ "kind": kind })).unwrap();
            assert!(provider.kind.is_some(), "{kind}");
        }
    }
}
