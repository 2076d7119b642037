//! `expected.json`: answers of the API that this version must give about a restored home.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::fixture::FOLDER;

/// One list of the API.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedList {
    pub path: String,
    /// The field of the answer that holds the list.
    pub list: String,
    /// How many items there are; not checked if new ones may come while the test runs.
    pub count: Option<usize>,
    /// Each matches one item: fields that are not named may have any value.
    pub items: Vec<Value>,
}

/// The lists of one server: `instance` or `control`.
pub fn expected_lists(server: &str) -> Vec<ExpectedList> {
    let text = std::fs::read_to_string(Path::new(FOLDER).join("expected.json")).unwrap();
    let mut all: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(all[server].take()).unwrap()
}

impl ExpectedList {
    #[track_caller]
    pub fn check(&self, answer: &Value) {
        let path = &self.path;
        let found = answer[&self.list].as_array().unwrap_or_else(|| panic!("{path}: no list in {answer}"));
        if let Some(count) = self.count {
            assert_eq!(found.len(), count, "{path}: {answer:#}");
        }
        for item in &self.items {
            let is_found = found.iter().any(|found| matches(item, found));
            assert!(is_found, "{path} has no {item:#} in {answer:#}");
        }
    }
}

/// Returns whether every field that is expected has the expected value. A text that ends in `…` may go on.
fn matches(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            expected.iter().all(|(key, value)| found.get(key).is_some_and(|found| matches(value, found)))
        }
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len() && expected.iter().zip(found).all(|(a, b)| matches(a, b))
        }
        (Value::String(expected), Value::String(found)) => match expected.strip_suffix('…') {
            Some(start) => found.starts_with(start),
            None => expected == found,
        },
        _ => expected == found,
    }
}
