//! Config errors: what is wrong, where, and how to fix it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use super::document::{ConfigNode, SyntaxError};
use super::secret::{SECRET_MASK, Secret};
use crate::id::AgentId;

/// One error in a config file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub file: String,
    /// Counted from 1; `None` if the error belongs to no line.
    pub line: Option<usize>,
    /// Dotted, as written in the file: `agents.list[0].model`. Empty for the file as a whole.
    pub path: String,
    pub message: String,
    pub hint: Option<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, ": {}", self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

/// All errors of a config file, ordered by line. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for ConfigErrors {}

/// A message and its hint, without a location. The hint may be empty.
pub(super) struct ConfigFault {
    pub message: String,
    pub hint: String,
}

impl ConfigFault {
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

struct SettingLocation {
    line: usize,
    written: String,
}

/// Maximum number of reported errors: more do not help, and each is searched for every secret.
const MAX_ERRORS: usize = 200;

pub(super) struct ConfigReport {
    file: String,
    agents: BTreeSet<AgentId>,
    errors: Vec<ConfigError>,
    /// Locations of the settings in the file, by their canonical path.
    places: BTreeMap<String, SettingLocation>,
    /// Sections that could not be parsed. Rule errors about their defaults are suppressed.
    broken: BTreeSet<String>,
    /// Paths of single values that could not be parsed.
    unread: BTreeSet<String>,
    /// Values from outside the file, and what is shown instead.
    hidden: Vec<(String, String)>,
    secrets: Vec<Secret>,
    /// Rules that name agents which are not in the file. They may have been created at run time.
    unknown_agents: Vec<UnknownAgent>,
}

/// A rule that names an agent which is not in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAgent {
    pub id: AgentId,
    pub error: ConfigError,
}

impl ConfigReport {
    pub fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            agents: BTreeSet::new(),
            errors: Vec::new(),
            places: BTreeMap::new(),
            broken: BTreeSet::new(),
            unread: BTreeSet::new(),
            hidden: Vec::new(),
            secrets: Vec::new(),
            unknown_agents: Vec::new(),
        }
    }

    /// Returns the workspace of the instance that this config belongs to. It is next to the file.
    pub fn instance_workspace(&self) -> PathBuf {
        Path::new(&self.file).with_file_name("workspace")
    }

    /// The agents that rules may name.
    pub fn know_agents(&mut self, ids: Vec<AgentId>) {
        self.agents.extend(ids);
    }

    pub fn knows_agent(&self, id: &AgentId) -> bool {
        self.agents.contains(id)
    }

    /// Like [`Self::add_error`], for an agent that may still exist in the instance's database.
    pub fn add_unknown_agent(&mut self, id: &AgentId, path: &str, hint: String) {
        let before = self.errors.len();
        self.add_error(path, format!("there is no agent \"{id}\""), hint);
        let found = self.errors.split_off(before).into_iter();
        self.unknown_agents.extend(found.map(|error| UnknownAgent { id: id.clone(), error }));
    }

    pub fn take_unknown_agents(&mut self) -> Vec<UnknownAgent> {
        std::mem::take(&mut self.unknown_agents)
    }

    pub fn add_syntax_error(&mut self, syntax: SyntaxError) {
        self.push_error(syntax.line, "", ConfigFault::new(syntax.message, ""));
    }

    /// Records the location of a setting, for later rules about it.
    pub fn record_location(&mut self, path: &str, node: &ConfigNode) {
        self.places
            .insert(path.to_owned(), SettingLocation { line: node.line, written: node.written.clone() });
    }

    /// Reports a value that cannot be parsed. It is dropped, and rule errors about it are suppressed.
    pub fn add_unreadable_value(&mut self, path: &str, node: &ConfigNode, fault: ConfigFault) {
        self.unread.insert(path.to_owned());
        // If a list element is dropped, the indexes of the following ones no longer match the file.
        if path.ends_with(']') {
            self.mark_section_broken(section_name(path));
        }
        self.push_error(Some(node.line), &node.written, fault);
    }

    /// Marks a section that is not valid without its unparsable parts.
    pub fn mark_section_broken(&mut self, section: &str) {
        self.broken.insert(section.to_owned());
    }

    /// Reports a value that breaks a rule. For a missing setting, the line of the nearest enclosing setting is used.
    pub fn add_error(&mut self, path: &str, message: impl Into<String>, hint: impl Into<String>) {
        let around = |(end, _): (usize, &str)| self.unread.contains(&path[..end]);
        let is_unread = self.has_unread(path) || path.rmatch_indices(['.', '[']).any(around);
        if self.is_section_broken(section_name(path)) || is_unread {
            return;
        }
        let around = |end| self.places.get(&path[..end]).map(|place| place.line);
        let line = path.rmatch_indices(['.', '[']).find_map(|(end, _)| around(end));
        let exact = self.places.get(path).map(|place| (place.line, place.written.clone()));
        let (line, written) = exact.map_or((line, path.to_owned()), |(line, written)| (Some(line), written));
        self.push_error(line, &written, ConfigFault::new(message, hint));
    }

    /// Returns the line of a setting, to refer to it from another error.
    pub fn line_of(&self, path: &str) -> Option<usize> {
        self.places.get(path).map(|place| place.line)
    }

    pub fn is_section_broken(&self, section: &str) -> bool {
        self.broken.contains(section)
    }

    /// Returns whether the whole section was parsed.
    pub fn is_section_sound(&self, section: &str) -> bool {
        !self.is_section_broken(section) && !self.has_unread(section)
    }

    /// Returns whether the setting or a part of it could not be parsed. Parts follow their path in the order of the
    /// set.
    fn has_unread(&self, path: &str) -> bool {
        let has_part = |dot: char| {
            let start = format!("{path}{dot}");
            self.unread.range(start.clone()..).next().is_some_and(|unread| unread.starts_with(&start))
        };
        self.unread.contains(path) || has_part('.') || has_part('[')
    }

    /// Replaces a value with `shown` in every message.
    pub fn redact_value(&mut self, value: &str, shown: &str) {
        // A very short value is no secret, and masking it would garble words.
        if value.len() >= 4 {
            self.hidden.push((value.to_owned(), shown.to_owned()));
        }
    }

    /// Redacts a secret in messages and adds it to the secrets that are redacted everywhere.
    pub fn redact_secret(&mut self, value: &str) {
        self.redact_value(value, SECRET_MASK);
        self.secrets.push(Secret::new(value));
    }

    pub fn take_secrets(&mut self) -> Vec<Secret> {
        std::mem::take(&mut self.secrets)
    }

    /// Reports rules that name agents which are not in the file, if no other agents can exist.
    pub fn refuse_agents(&mut self, unknown: impl Iterator<Item = ConfigError>) {
        self.errors.extend(unknown);
    }

    pub fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    pub fn into_errors(mut self) -> ConfigErrors {
        self.errors.sort_by_key(|error| error.line.unwrap_or(0));
        let left_out = self.errors.len().saturating_sub(MAX_ERRORS);
        self.errors.truncate(MAX_ERRORS);
        for error in &mut self.errors {
            for (value, shown) in &self.hidden {
                error.message = error.message.replace(value, shown);
                error.hint = error.hint.as_ref().map(|hint| hint.replace(value, shown));
            }
        }
        if left_out > 0 {
            self.push_error(None, "", ConfigFault::new(format!("and {left_out} more errors"), ""));
        }
        ConfigErrors(self.errors)
    }

    fn push_error(&mut self, line: Option<usize>, path: &str, fault: ConfigFault) {
        let hint = Some(fault.hint).filter(|hint| !hint.is_empty());
        let (file, path) = (self.file.clone(), path.to_owned());
        self.errors.push(ConfigError { file, line, path, message: fault.message, hint });
    }
}

fn section_name(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or_default()
}
