//! Notes about settings that were not imported unchanged, and why.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A path in the source files and a sentence about it. Never a value, which could be a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranslationNote {
    pub path: String,
    pub reason: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranslationNotes {
    /// Keys without effect here.
    pub ignored: Vec<TranslationNote>,
    /// Keys whose meaning changed.
    pub changed: Vec<TranslationNote>,
    /// Secrets that were not imported, and what depends on them.
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

    /// Notes every key below a path.
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
