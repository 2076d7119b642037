//! Translates secrets. References stay references; plain-text values are imported only on request.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::notes::TranslationNotes;
use super::source_table::SourceTable;
use crate::config::Secret;

const MAX_SECRET_NAME_LEN: usize = 64;

pub(super) struct SecretCollector<'a> {
    pub collected: BTreeMap<String, Secret>,
    /// Variables that the source config sets, each with its path.
    variables: BTreeMap<String, (String, String)>,
    used: BTreeSet<String>,
    is_set: &'a dyn Fn(&str) -> bool,
    with: bool,
}

impl<'a> SecretCollector<'a> {
    pub fn new(
        is_set: &'a dyn Fn(&str) -> bool,
        with: bool,
        mut env: SourceTable,
        notes: &mut TranslationNotes,
    ) -> Self {
        let mut variables = BTreeMap::new();
        let inner = env.take_table("vars", notes);
        if let Some(shell) = env.take_value("shellEnv") {
            notes.note_ignored_below(
                &env.key_path("shellEnv"),
                &shell,
                "instances have the environment of their server",
            );
        }
        for (path, name, value) in inner.into_values().chain(env.into_values()) {
            match value.as_str() {
                Some(text) => drop(variables.insert(name, (path, text.to_owned()))),
                None => notes.note_ignored(&path, "expected text"),
            }
        }
        Self { collected: BTreeMap::new(), variables, used: BTreeSet::new(), is_set, with }
    }

    /// Adds variables of a `.env` file. They override those of the config.
    pub fn add_variables(&mut self, variables: Vec<(String, String)>) {
        for (name, value) in variables {
            self.variables.insert(name.clone(), (format!(".env.{name}"), value));
        }
    }

    /// Returns a reference for our config. `None` if the secret is not imported, which is noted.
    pub fn translate_reference(
        &mut self,
        path: &str,
        value: &Value,
        notes: &mut TranslationNotes,
    ) -> Option<String> {
        match parse_origin(value) {
            SecretOrigin::Variable(name) => self.reference_variable(path, &name, notes),
            SecretOrigin::Open(text) => self.store_secret(path, &text, notes),
            SecretOrigin::Elsewhere => {
                notes.note_left_behind(path, "it is stored in a format that only OpenClaw can read");
                None
            }
        }
    }

    /// Returns a reference to the usual variable of an omitted setting, if the variable exists.
    pub fn default_reference(&mut self, name: &str, notes: &mut TranslationNotes) -> Option<String> {
        let known = (self.is_set)(name) || self.variables.contains_key(name);
        known.then(|| self.reference_variable(&format!("env.{name}"), name, notes)).flatten()
    }

    /// Notes unused variables and returns the imported secrets.
    pub fn into_secrets(self, notes: &mut TranslationNotes) -> BTreeMap<String, Secret> {
        for (path, _) in
            self.variables.iter().filter(|(name, _)| !self.used.contains(*name)).map(|(_, one)| one)
        {
            notes.note_ignored(
                path,
                "no imported setting uses it, and instances cannot set environment variables",
            );
        }
        self.collected
    }

    fn reference_variable(&mut self, path: &str, name: &str, notes: &mut TranslationNotes) -> Option<String> {
        self.used.insert(name.to_owned());
        if (self.is_set)(name) {
            return Some(format!("env:{name}"));
        }
        if let Some((_, value)) = self.variables.get(name).cloned() {
            return self.store_secret(path, &value, notes);
        }
        notes.note_left_behind(path, format!("{name} is not set in the environment of the instances"));
        None
    }

    fn store_secret(&mut self, path: &str, value: &str, notes: &mut TranslationNotes) -> Option<String> {
        if !self.with {
            notes.note_left_behind(
                path,
                "it is stored in plain text: request the import of secrets, or set it manually",
            );
            return None;
        }
        let plain =
            path.chars().map(|c| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '-' });
        let name: String = plain.collect();
        let mut name = name[name.len().saturating_sub(MAX_SECRET_NAME_LEN - 4)..].to_owned();
        let taken = |name: &String| self.collected.get(name).is_some_and(|other| other.expose() != value);
        while taken(&name) {
            name.push('x');
        }
        self.collected.insert(name.clone(), Secret::new(value));
        Some(format!("secret:{name}"))
    }
}

/// Removes the user name and password from a URL: URLs in a config are visible to everybody.
pub(super) fn strip_credentials(address: String, path: &str, notes: &mut TranslationNotes) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let Some((_, host)) = rest[..end].rsplit_once('@') else { return address };
    notes.note_left_behind(path, "its user and password were removed: URLs must not contain secrets");
    format!("{scheme}://{host}{}", &rest[end..])
}

enum SecretOrigin {
    Variable(String),
    Open(String),
    Elsewhere,
}

/// Parses `"${NAME}"`, `{source: "env", id: "NAME"}`, or a plain value.
fn parse_origin(value: &Value) -> SecretOrigin {
    if let Some(text) = value.as_str() {
        let inner = text.trim().strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        return match inner {
            Some(name) => SecretOrigin::Variable(name.to_owned()),
            None => SecretOrigin::Open(text.to_owned()),
        };
    }
    let name = value["id"].as_str().or_else(|| value["name"].as_str());
    match (value["source"].as_str(), name) {
        (Some("env"), Some(name)) => SecretOrigin::Variable(name.to_owned()),
        _ => SecretOrigin::Elsewhere,
    }
}
