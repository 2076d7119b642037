//! What was not taken over as it stood, and why.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A place in the other files, and a sentence about it. Never a value: it could be a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranslationNote {
    pub path: String,
    pub reason: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranslationNotes {
    /// Keys that have no effect here.
    pub ignored: Vec<TranslationNote>,
    /// Keys that mean something else here than they did there.
    pub changed: Vec<TranslationNote>,
    /// Secrets that stay where they are, and what waits for them.
    pub left: Vec<TranslationNote>,
}

impl TranslationNotes {
    pub fn extend(&mut self, more: Self) {
        self.ignored.extend(more.ignored);
        self.changed.extend(more.changed);
        self.left.extend(more.left);
    }

    pub fn note_ignored(&mut self, path: &str, why: impl Into<String>) {
        self.ignored.push(TranslationNote { path: path.to_owned(), reason: why.into() });
    }

    pub fn note_changed(&mut self, path: &str, why: impl Into<String>) {
        self.changed.push(TranslationNote { path: path.to_owned(), reason: why.into() });
    }

    pub(super) fn note_left_behind(&mut self, path: &str, why: impl Into<String>) {
        self.left.push(TranslationNote { path: path.to_owned(), reason: why.into() });
    }

    /// Every key below a place.
    pub(super) fn note_ignored_below(&mut self, path: &str, value: &Value, why: &str) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                map.iter().for_each(|(key, value)| self.note_ignored_below(&join_key(path, key), value, why));
            }
            Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
                let items = items.iter().enumerate();
                items.for_each(|(at, item)| self.note_ignored_below(&format!("{path}[{at}]"), item, why));
            }
            _ => self.note_ignored(path, why),
        }
    }
}

pub(super) fn join_key(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-$".contains(c));
    let key = if plain { key.to_owned() } else { format!("{key:?}") };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}
