//! Translates the data of an OpenClaw gateway, as values: its config of both generations, its cron jobs and its
//! transcripts. Every key is either translated or named in the notes; nothing is dropped silently.

mod agent_names;
mod agents;
mod channels;
mod cron;
mod groups;
mod models;
mod notes;
mod routing;
mod secrets;
mod session;
mod source_table;
mod tools;
mod transcript;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

pub use agent_names::AgentRenames;
pub use agents::OpenclawAgentFiles;
pub use notes::{TranslationNote, TranslationNotes};
pub use transcript::{ImportedLine, parse_line, translate_session_key};

use crate::config::Secret;
use crate::nesting;
use source_table::SourceTable;

/// A JSON5 syntax error. It contains only the position, because the file may hold anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is not JSON5: {reason}")]
pub struct InvalidJson5 {
    pub line: usize,
    pub reason: String,
}

/// The data to translate, and options.
pub struct OpenclawInputs<'a> {
    pub config: Value,
    /// Its file of cron jobs.
    pub jobs: Option<Value>,
    /// Variables of the `.env` file next to the config.
    pub variables: Vec<(String, String)>,
    /// Senders that were paired there.
    pub paired: Vec<PairedSenders>,
    /// Key files, each with its name for the notes.
    pub profiles: Vec<(String, Value)>,
    /// Returns whether an environment variable is set for instances.
    pub is_set: &'a dyn Fn(&str) -> bool,
    /// Whether secrets stored in plain text are imported, not left behind.
    pub with_secrets: bool,
}

/// Senders that OpenClaw paired with one of its accounts.
#[derive(Clone, Debug)]
pub struct PairedSenders {
    /// The file that lists them.
    pub place: String,
    pub channel: String,
    pub account: Option<String>,
    pub ids: Vec<String>,
}

/// The result of the translation.
#[derive(Clone, Debug)]
pub struct OpenclawTranslation {
    /// A merge patch for our config.
    pub config: Value,
    /// Secrets to store, by their name in the config.
    pub secrets: BTreeMap<String, Secret>,
    /// The agents, each with its old id and its folders.
    pub agents: Vec<OpenclawAgentFiles>,
    pub renamed: AgentRenames,
    pub notes: TranslationNotes,
}

/// Parses JSON with comments, trailing commas and bare keys.
pub fn parse(text: &str) -> Result<Value, InvalidJson5> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    nesting::check_json(text).map_err(|deep| InvalidJson5 { line: deep.line, reason: deep.to_string() })?;
    let mut parser = json5::Deserializer::from_str(text);
    Value::deserialize(&mut parser).map_err(|error| InvalidJson5 {
        line: error.position().map_or(1, |position| position.line + 1),
        reason: error.code().map_or_else(|| "it cannot be parsed".to_owned(), |code| code.to_string()),
    })
}

pub fn translate_config(inputs: OpenclawInputs<'_>) -> OpenclawTranslation {
    let mut notes = TranslationNotes::default();
    let mut whole = SourceTable::from_value("", inputs.config, &mut notes);
    let variables = whole.take_table("env", &mut notes);
    let mut secrets =
        secrets::SecretCollector::new(inputs.is_set, inputs.with_secrets, variables, &mut notes);
    secrets.add_variables(inputs.variables);
    let mut models = models::OpenclawModels::from_config(&mut whole, &mut secrets, &mut notes);
    for (name, value) in inputs.profiles {
        models.add_profiles(SourceTable::from_value(&name, value, &mut notes), &mut secrets, &mut notes);
    }
    let mut config = Map::new();
    let roster = agents::translate_agents(&mut whole, &mut models, &mut notes);
    let mut channels = channels::translate_channels(&mut whole, &mut secrets, &mut notes);
    channels::add_paired_senders(&mut channels, &inputs.paired, &mut notes);
    let bindings = routing::translate_bindings(&mut whole, &roster.renamed, &channels, &mut notes);
    config.insert("bindings".into(), bindings);
    config.insert("broadcast".into(), routing::translate_broadcast(&mut whole, &roster.renamed, &mut notes));
    config.insert("session".into(), session::translate_session(&mut whole, &mut notes));
    config.insert(
        "tools".into(),
        tools::translate_tools(&mut whole, &roster.renamed, &mut secrets, &mut notes),
    );
    config.insert(
        "cron".into(),
        cron::translate_cron_jobs(inputs.jobs, &roster.renamed, &channels, &mut notes),
    );
    config.insert("channels".into(), channels);
    config.insert("heartbeat".into(), roster.heartbeats);
    config.insert("agents".into(), roster.agents);
    models.write(&mut config);
    note_unused_sections(&mut whole, &mut notes);
    whole.note_rest("Polyclaw has no equivalent", &mut notes);
    config.retain(|_, value| !is_empty(value));
    OpenclawTranslation {
        config: Value::Object(config),
        secrets: secrets.into_secrets(&mut notes),
        agents: roster.files,
        renamed: roster.renamed,
        notes,
    }
}

/// Sections that do not apply here, with the reason.
const UNUSED_SECTIONS: [(&str, &str); 6] = [
    ("$schema", "it applies to the OpenClaw config file"),
    ("meta", "it applies to OpenClaw"),
    ("wizard", "it applies to OpenClaw"),
    ("gateway", "an instance gets its own address and token"),
    ("auth", "keys belong to [providers], each with its secret"),
    ("logging", "see [observability]"),
];

fn note_unused_sections(whole: &mut SourceTable, notes: &mut TranslationNotes) {
    for (key, why) in UNUSED_SECTIONS {
        if let Some(value) = whole.take_value(key) {
            notes.note_ignored_below(&whole.key_path(key), &value, why);
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Inserts a value that is not empty.
fn insert_nonempty(table: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    let value = value.into();
    if !is_empty(&value) {
        table.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests;
