//! What was not taken over as it stood, and why.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A place in the other files, and a sentence about it. Never a value: it could be a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub path: String,
    pub why: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// Keys that have no effect here.
    pub ignored: Vec<Note>,
    /// Keys that mean something else here than they did there.
    pub changed: Vec<Note>,
    /// Secrets that stay where they are, and what waits for them.
    pub left: Vec<Note>,
}

impl Notes {
    pub fn extend(&mut self, more: Self) {
        self.ignored.extend(more.ignored);
        self.changed.extend(more.changed);
        self.left.extend(more.left);
    }

    pub fn ignore(&mut self, path: &str, why: impl Into<String>) {
        self.ignored.push(Note { path: path.to_owned(), why: why.into() });
    }

    pub fn change(&mut self, path: &str, why: impl Into<String>) {
        self.changed.push(Note { path: path.to_owned(), why: why.into() });
    }

    pub(super) fn leave(&mut self, path: &str, why: impl Into<String>) {
        self.left.push(Note { path: path.to_owned(), why: why.into() });
    }

    /// Every key below a place.
    pub(super) fn ignore_below(&mut self, path: &str, value: &Value, why: &str) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                map.iter().for_each(|(key, value)| self.ignore_below(&join(path, key), value, why));
            }
            Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
                let items = items.iter().enumerate();
                items.for_each(|(at, item)| self.ignore_below(&format!("{path}[{at}]"), item, why));
            }
            _ => self.ignore(path, why),
        }
    }
}

pub(super) fn join(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-$".contains(c));
    let key = if plain { key.to_owned() } else { format!("{key:?}") };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}
