//! New ids of imported agents.

use std::collections::BTreeMap;

use super::notes::TranslationNotes;
use super::source_table::SourceTable;
use crate::command;
use crate::id::AgentId;

/// Maps the ids of agents in OpenClaw to their ids here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentRenames(BTreeMap<String, AgentId>);

impl AgentRenames {
    /// Finds an agent by its exact id, else ignoring case.
    pub fn find_agent(&self, called: &str) -> Option<&AgentId> {
        let plain = normalize_id(called);
        let alike = || self.0.iter().find(|(other, _)| self::normalize_id(other) == plain);
        self.0.get(called).or_else(|| alike().map(|(_, id)| id))
    }

    /// Translates a list of agents. `*` matches any text; unknown agents are noted.
    pub(super) fn rename_list(
        &self,
        path: &str,
        names: &[String],
        notes: &mut TranslationNotes,
    ) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for name in names {
            match self
                .find_agent(name)
                .map(ToString::to_string)
                .or_else(|| name.contains('*').then(|| name.clone()))
            {
                Some(id) if !found.contains(&id) => found.push(id),
                Some(_) => notes.note_ignored(path, format!("{name:?} is listed twice")),
                None => notes.note_ignored(path, format!("there is no agent {name:?}")),
            }
        }
        found
    }

    /// Adds the agent `main`, if none is listed.
    pub(super) fn add_main(&mut self) {
        self.0.insert("main".to_owned(), AgentId::main());
    }

    fn is_free(&self, id: &AgentId) -> bool {
        !self.0.values().any(|other| other == id)
    }
}

/// Gives every agent a unique id.
pub(super) fn rename_agents(listed: &[(String, SourceTable)], notes: &mut TranslationNotes) -> AgentRenames {
    let mut renamed = AgentRenames::default();
    for (called, part) in listed {
        let plain = normalize_id(called);
        let numbered = (2..).map(|number| format!("{}-{number}", &plain[..plain.len().min(58)]));
        let mut wishes = std::iter::once(plain.clone()).chain(numbered);
        let id = wishes.find_map(|id| {
            AgentId::parse(&id).ok().filter(|id| renamed.is_free(id) && !command::is_reserved_id(id))
        });
        let Some(id) = id else { continue };
        if id.as_str() != called {
            notes.note_changed(part.path(), format!("the agent {called:?} is named {:?} here", id.as_str()));
        }
        renamed.0.insert(called.clone(), id);
    }
    renamed
}

/// Turns an id into a valid one: lower case, starting with a letter.
fn normalize_id(called: &str) -> String {
    let lower = called.trim().to_lowercase();
    let word = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' { c } else { '-' };
    let joined: Vec<String> =
        lower.chars().map(word).collect::<String>().split('-').map(str::to_owned).collect();
    let mut id = joined.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    if !id.starts_with(|c: char| c.is_ascii_lowercase()) {
        id = format!("agent-{}", id.trim_start_matches('_'));
    }
    id.truncate(64);
    id.trim_end_matches('-').to_owned()
}
