//! A table of the source config that is consumed key by key. Keys that remain at the end were not understood and are
//! noted.

use serde_json::{Map, Value};

use super::notes::{TranslationNotes, join_key};

#[derive(Clone, Debug, Default)]
pub(super) struct SourceTable {
    path: String,
    map: Map<String, Value>,
}

impl SourceTable {
    pub fn from_value(path: &str, value: Value, notes: &mut TranslationNotes) -> Self {
        let map = match value {
            Value::Object(map) => map,
            Value::Null => Map::new(),
            _ => {
                notes.note_ignored(path, "expected a table");
                Map::new()
            }
        };
        Self { path: path.to_owned(), map }
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn key_path(&self, key: &str) -> String {
        join_key(&self.path, key)
    }

    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Takes a value; `null` counts as missing.
    pub fn take_value(&mut self, key: &str) -> Option<Value> {
        self.map.shift_remove(key).filter(|value| !value.is_null())
    }

    pub fn take_table(&mut self, key: &str, notes: &mut TranslationNotes) -> Self {
        let path = self.key_path(key);
        Self::from_value(&path, self.take_value(key).unwrap_or_default(), notes)
    }

    pub fn take_text(&mut self, key: &str, notes: &mut TranslationNotes) -> Option<String> {
        self.take_as(key, "expected text", notes, |value| scalar_text(&value))
    }

    pub fn take_flag(&mut self, key: &str, notes: &mut TranslationNotes) -> Option<bool> {
        self.take_as(key, "expected true or false", notes, |value| value.as_bool())
    }

    pub fn take_number(&mut self, key: &str, notes: &mut TranslationNotes) -> Option<u64> {
        self.take_as(key, "expected a whole number", notes, |value| value.as_u64())
    }

    /// Takes a number and clamps it to the bounds, which is noted.
    pub fn take_bounded(
        &mut self,
        key: &str,
        (low, high): (u64, u64),
        notes: &mut TranslationNotes,
    ) -> Option<u64> {
        let number = self.take_number(key, notes)?;
        let moved = number.clamp(low, high);
        if moved != number {
            notes.note_changed(
                &self.key_path(key),
                format!("{number} was changed to {moved}, the nearest possible value"),
            );
        }
        Some(moved)
    }

    pub fn take_list(&mut self, key: &str, notes: &mut TranslationNotes) -> Option<Vec<Value>> {
        self.take_as(key, "expected a list", notes, |value| match value {
            Value::Array(items) => Some(items),
            _ => None,
        })
    }

    /// Takes texts and numbers as texts; a single value is a list of one.
    pub fn take_texts(&mut self, key: &str, notes: &mut TranslationNotes) -> Vec<String> {
        let list = match self.take_value(key) {
            Some(Value::Array(items)) => items,
            Some(one) => vec![one],
            None => return Vec::new(),
        };
        let mut texts = Vec::new();
        for (at, item) in list.iter().enumerate() {
            match scalar_text(item) {
                Some(text) => texts.push(text),
                None => notes.note_ignored(&format!("{}[{at}]", self.key_path(key)), "expected text"),
            }
        }
        texts
    }

    /// Returns every table in it, by name.
    pub fn into_tables(self, notes: &mut TranslationNotes) -> Vec<(String, Self)> {
        let path = self.path;
        let each = self.map.into_iter();
        each.map(|(key, value)| (key.clone(), Self::from_value(&join_key(&path, &key), value, notes)))
            .collect()
    }

    pub fn into_values(self) -> impl Iterator<Item = (String, String, Value)> {
        let path = self.path;
        self.map.into_iter().map(move |(key, value)| (join_key(&path, &key), key, value))
    }

    /// Returns this table with missing keys taken from `base`.
    pub fn overlay_on(&self, base: &Self) -> Self {
        let mut map = base.map.clone();
        self.map.iter().for_each(|(key, value)| drop(map.insert(key.clone(), value.clone())));
        Self { path: self.path.clone(), map }
    }

    /// Notes all remaining keys.
    pub fn note_rest(self, why: &str, notes: &mut TranslationNotes) {
        for (path, _, value) in self.into_values() {
            notes.note_ignored_below(&path, &value, why);
        }
    }

    /// Notes the remaining keys of its own table, and returns those that came from the shared one.
    pub fn note_own_rest(self, own: &Self, why: &str, notes: &mut TranslationNotes) -> Vec<String> {
        let mut others = Vec::new();
        for (path, key, value) in self.into_values() {
            match own.map.contains_key(&key) {
                true => notes.note_ignored_below(&path, &value, why),
                false => others.push(key),
            }
        }
        others
    }

    fn take_as<T>(
        &mut self,
        key: &str,
        wrong: &str,
        notes: &mut TranslationNotes,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Option<T> {
        let found = read(self.take_value(key)?);
        if found.is_none() {
            notes.note_ignored(&self.key_path(key), wrong);
        }
        found
    }
}

fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
