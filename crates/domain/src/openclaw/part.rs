//! A table of the other file that is taken apart key by key. What is left in it at the end was not understood, and is
//! noted.

use serde_json::{Map, Value};

use super::notes::{Notes, join};

#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    path: String,
    map: Map<String, Value>,
}

impl Part {
    pub fn of(path: &str, value: Value, notes: &mut Notes) -> Self {
        let map = match value {
            Value::Object(map) => map,
            Value::Null => Map::new(),
            _ => {
                notes.ignore(path, "it is not a table");
                Map::new()
            }
        };
        Self { path: path.to_owned(), map }
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn at(&self, key: &str) -> String {
        join(&self.path, key)
    }

    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// `null` is nothing.
    pub fn take(&mut self, key: &str) -> Option<Value> {
        self.map.shift_remove(key).filter(|value| !value.is_null())
    }

    pub fn part(&mut self, key: &str, notes: &mut Notes) -> Self {
        let path = self.at(key);
        Self::of(&path, self.take(key).unwrap_or_default(), notes)
    }

    pub fn text(&mut self, key: &str, notes: &mut Notes) -> Option<String> {
        self.taken(key, "it is not a text", notes, |value| word(&value))
    }

    pub fn flag(&mut self, key: &str, notes: &mut Notes) -> Option<bool> {
        self.taken(key, "it is not true or false", notes, |value| value.as_bool())
    }

    pub fn number(&mut self, key: &str, notes: &mut Notes) -> Option<u64> {
        self.taken(key, "it is not a whole number", notes, |value| value.as_u64())
    }

    /// A number within bounds; one beyond them is moved there, and that is noted.
    pub fn bounded(&mut self, key: &str, (low, high): (u64, u64), notes: &mut Notes) -> Option<u64> {
        let number = self.number(key, notes)?;
        let moved = number.clamp(low, high);
        if moved != number {
            notes.change(&self.at(key), format!("{number} became {moved}, the nearest that is possible"));
        }
        Some(moved)
    }

    pub fn list(&mut self, key: &str, notes: &mut Notes) -> Option<Vec<Value>> {
        self.taken(key, "it is not a list", notes, |value| match value {
            Value::Array(items) => Some(items),
            _ => None,
        })
    }

    /// Texts and numbers, as texts; a single one is a list of one.
    pub fn texts(&mut self, key: &str, notes: &mut Notes) -> Vec<String> {
        let list = match self.take(key) {
            Some(Value::Array(items)) => items,
            Some(one) => vec![one],
            None => return Vec::new(),
        };
        let mut texts = Vec::new();
        for (at, item) in list.iter().enumerate() {
            match word(item) {
                Some(text) => texts.push(text),
                None => notes.ignore(&format!("{}[{at}]", self.at(key)), "it is not a text"),
            }
        }
        texts
    }

    /// Each table in it, by name.
    pub fn parts(self, notes: &mut Notes) -> Vec<(String, Self)> {
        let path = self.path;
        let each = self.map.into_iter();
        each.map(|(key, value)| (key.clone(), Self::of(&join(&path, &key), value, notes))).collect()
    }

    pub fn values(self) -> impl Iterator<Item = (String, String, Value)> {
        let path = self.path;
        self.map.into_iter().map(move |(key, value)| (join(&path, &key), key, value))
    }

    /// This one's keys before those of a table for all.
    pub fn over(&self, base: &Self) -> Self {
        let mut map = base.map.clone();
        self.map.iter().for_each(|(key, value)| drop(map.insert(key.clone(), value.clone())));
        Self { path: self.path.clone(), map }
    }

    /// Whatever nobody took.
    pub fn rest(self, why: &str, notes: &mut Notes) {
        for (path, _, value) in self.values() {
            notes.ignore_below(&path, &value, why);
        }
    }

    /// The same for what a table of its own has; the keys that came from the table for all are returned.
    pub fn rest_of(self, own: &Self, why: &str, notes: &mut Notes) -> Vec<String> {
        let mut others = Vec::new();
        for (path, key, value) in self.values() {
            match own.map.contains_key(&key) {
                true => notes.ignore_below(&path, &value, why),
                false => others.push(key),
            }
        }
        others
    }

    fn taken<T>(
        &mut self,
        key: &str,
        wrong: &str,
        notes: &mut Notes,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Option<T> {
        let found = read(self.take(key)?);
        if found.is_none() {
            notes.ignore(&self.at(key), wrong);
        }
        found
    }
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
