//! Secrets of the other file. A reference stays a reference; a value in the open is kept only where that was asked for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::notes::Notes;
use super::part::Part;
use crate::config::Secret;

const LONGEST_NAME: usize = 64;

pub(super) struct Secrets<'a> {
    pub kept: BTreeMap<String, Secret>,
    /// Variables that the file itself sets, each with its place.
    variables: BTreeMap<String, (String, String)>,
    used: BTreeSet<String>,
    is_set: &'a dyn Fn(&str) -> bool,
    with: bool,
}

impl<'a> Secrets<'a> {
    pub fn new(is_set: &'a dyn Fn(&str) -> bool, with: bool, mut env: Part, notes: &mut Notes) -> Self {
        let mut variables = BTreeMap::new();
        let inner = env.part("vars", notes);
        if let Some(shell) = env.take("shellEnv") {
            notes.ignore_below(&env.at("shellEnv"), &shell, "instances have the environment of their server");
        }
        for (path, name, value) in inner.values().chain(env.values()) {
            match value.as_str() {
                Some(text) => drop(variables.insert(name, (path, text.to_owned()))),
                None => notes.ignore(&path, "it is not a text"),
            }
        }
        Self { kept: BTreeMap::new(), variables, used: BTreeSet::new(), is_set, with }
    }

    /// Variables of a file beside the config. They come before those of the config itself.
    pub fn add(&mut self, variables: Vec<(String, String)>) {
        for (name, value) in variables {
            self.variables.insert(name.clone(), (format!(".env.{name}"), value));
        }
    }

    /// A reference our config can hold, or nothing: then it is noted what stays behind.
    pub fn reference(&mut self, path: &str, value: &Value, notes: &mut Notes) -> Option<String> {
        match named(value) {
            Source::Variable(name) => self.variable(path, &name, notes),
            Source::Open(text) => self.keep(path, &text, notes),
            Source::Elsewhere => {
                notes.leave(path, "it is kept by the other program, in a way only that can read");
                None
            }
        }
    }

    /// A variable that is meant though nothing names it, where there is one.
    pub fn usual(&mut self, name: &str, notes: &mut Notes) -> Option<String> {
        let known = (self.is_set)(name) || self.variables.contains_key(name);
        known.then(|| self.variable(&format!("env.{name}"), name, notes)).flatten()
    }

    /// Notes the variables that nothing here uses, and returns what is kept.
    pub fn end(self, notes: &mut Notes) -> BTreeMap<String, Secret> {
        for (path, _) in
            self.variables.iter().filter(|(name, _)| !self.used.contains(*name)).map(|(_, one)| one)
        {
            notes.ignore(path, "nothing that was taken over uses it, and an instance sets no variables");
        }
        self.kept
    }

    fn variable(&mut self, path: &str, name: &str, notes: &mut Notes) -> Option<String> {
        self.used.insert(name.to_owned());
        if (self.is_set)(name) {
            return Some(format!("env:{name}"));
        }
        if let Some((_, value)) = self.variables.get(name).cloned() {
            return self.keep(path, &value, notes);
        }
        notes.leave(path, format!("{name} is not set in the environment of instances"));
        None
    }

    fn keep(&mut self, path: &str, value: &str, notes: &mut Notes) -> Option<String> {
        if !self.with {
            notes.leave(path, "it stands there in the open: ask for secrets to be moved, or set it by hand");
            return None;
        }
        let plain =
            path.chars().map(|c| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '-' });
        let name: String = plain.collect();
        let mut name = name[name.len().saturating_sub(LONGEST_NAME - 4)..].to_owned();
        let taken = |name: &String| self.kept.get(name).is_some_and(|other| other.expose() != value);
        while taken(&name) {
            name.push('x');
        }
        self.kept.insert(name.clone(), Secret::new(value));
        Some(format!("secret:{name}"))
    }
}

/// An address without the user and the password that stand in it: a config shows addresses to everybody.
pub(super) fn without_password(address: String, path: &str, notes: &mut Notes) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let Some((_, host)) = rest[..end].rsplit_once('@') else { return address };
    notes.leave(path, "its user and password were taken out: an address holds no secrets here");
    format!("{scheme}://{host}{}", &rest[end..])
}

enum Source {
    Variable(String),
    Open(String),
    Elsewhere,
}

/// `"${NAME}"`, `{source: "env", id: "NAME"}`, or the value itself.
fn named(value: &Value) -> Source {
    if let Some(text) = value.as_str() {
        let inner = text.trim().strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        return match inner {
            Some(name) => Source::Variable(name.to_owned()),
            None => Source::Open(text.to_owned()),
        };
    }
    let name = value["id"].as_str().or_else(|| value["name"].as_str());
    match (value["source"].as_str(), name) {
        (Some("env"), Some(name)) => Source::Variable(name.to_owned()),
        _ => Source::Elsewhere,
    }
}
