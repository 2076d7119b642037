//! Holds a tree against the schema: unknown keys, wrong types, numbers out of range, misspelt words. All of
//! them are found in one walk, and each with its line, which a derived deserializer cannot do.

mod leaf;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::document::{Kind, Node};
use super::expand::{self, Lookup, Source};
use super::name;
use super::report::{Fault, Report};
use crate::redact;

/// Keys that other gateways have: the section, the key, and what to write here.
const FOREIGN_KEYS: [(&str, &str, &str); 3] = [
    ("sandbox", "scope", "take it out: every agent has a sandbox of its own"),
    ("intent_classifier", "enabled", "take it out: the classifier is on where it names a model"),
    ("identity", "theme", "take it out, and write it into SOUL.md of the agent's workspace"),
];

/// Keys that name folders.
const FOLDERS: [&str; 4] = ["workspace", "dir", "cwd", "folders"];

pub(super) struct Shape<'a> {
    root: &'a Value,
    /// JSON5 writes our snake_case keys in camelCase. Names that users choose stay as they are.
    camel: bool,
    lookup: Lookup<'a>,
    report: &'a mut Report,
}

impl<'a> Shape<'a> {
    pub fn new(root: &'a Value, camel: bool, lookup: Lookup<'a>, report: &'a mut Report) -> Self {
        Self { root, camel, lookup, report }
    }

    /// The tree as plain JSON with proper keys and resolved text; what was wrong with it is left out and reported.
    pub fn fit(mut self, root: Node) -> Value {
        self.walk(root, self.root, "").unwrap_or_else(|| Value::Object(Map::new()))
    }

    fn walk(&mut self, mut node: Node, schema: &'a Value, path: &str) -> Option<Value> {
        self.report.place(path, &node);
        let (def, schema) = self.follow(schema);
        let kind = std::mem::replace(&mut node.kind, Kind::Null);
        let found = kind.noun();
        match (leaf::types(schema), kind) {
            (types, Kind::Table(entries)) if types.contains(&"object") => {
                Some(self.table(&node, entries, schema, path))
            }
            (types, Kind::List(items)) if types.contains(&"array") => {
                Some(self.list(items, &schema["items"], path))
            }
            (types, Kind::Text(text)) if types.contains(&"string") => {
                let value = self.text(&text, def, schema).and_then(|value| self.at_home(value, path));
                self.keep(value, path, &node)
            }
            (types, Kind::Bool(value)) if types.contains(&"boolean") => Some(value.into()),
            (types, Kind::Int(value)) if leaf::is_numeric(&types) => {
                self.keep(leaf::integer(value, schema), path, &node)
            }
            (types, Kind::Float(value)) if leaf::is_numeric(&types) => {
                self.keep(leaf::float(value, &types, schema), path, &node)
            }
            (types, _) => {
                let fault = Fault::new(format!("expected {}, found {found}", leaf::noun(&types)), "");
                self.keep(Err(fault), path, &node)
            }
        }
    }

    fn keep(&mut self, value: Result<Value, Fault>, path: &str, node: &Node) -> Option<Value> {
        value.map_err(|fault| self.report.unreadable(path, node, fault)).ok()
    }

    fn table(&mut self, parent: &Node, entries: Vec<(String, Node)>, schema: &'a Value, path: &str) -> Value {
        let mut out = Map::new();
        let mut seen = BTreeSet::new();
        for (key, node) in entries {
            let Some((key, inner)) = self.property(schema, &key) else {
                let fault = Fault::new("unknown key", self.correction(path, &key, schema));
                self.report.unreadable(&name::join(path, &key), &node, fault);
                continue;
            };
            // `null` in JSON5 says "not set".
            if matches!(node.kind, Kind::Null) {
                continue;
            }
            let path = name::join(path, &key);
            if seen.contains(&key) {
                self.report.unreadable(
                    &path,
                    &node,
                    Fault::new(format!("{key} is given twice"), "keep one of them"),
                );
            } else if let Some(value) = self.walk(node, inner, &path) {
                out.insert(key.clone(), value);
            }
            seen.insert(key);
        }
        self.require(parent, &seen, schema, path);
        Value::Object(out)
    }

    fn require(&mut self, parent: &Node, seen: &BTreeSet<String>, schema: &Value, path: &str) {
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        // A model is named by one word or by two.
        let is_model = schema["properties"].get("primary").is_some() && !seen.contains("primary");
        let parts = ["provider", "model"].into_iter().filter(|_| is_model);
        for key in required.chain(parts).filter(|key| !seen.contains(*key)) {
            self.report.unreadable(
                path,
                parent,
                Fault::new(format!("{key} is missing"), format!("add {key} = …")),
            );
        }
    }

    fn list(&mut self, items: Vec<Node>, schema: &'a Value, path: &str) -> Value {
        let item = |(index, node)| self.walk(node, schema, &format!("{path}[{index}]"));
        items.into_iter().enumerate().filter_map(item).collect()
    }

    fn text(&mut self, text: &str, def: Option<&str>, schema: &Value) -> Result<Value, Fault> {
        if schema["writeOnly"] == true {
            let value = expand::secret(text, self.lookup)?;
            self.report.hide_secret(&value);
            return Ok(value.into());
        }
        let expanded = expand::expand(text, self.lookup)?;
        // Before its parts: what is replaced in pieces is not found as a whole.
        if !redact::credentials(&expanded.text).is_empty() {
            self.report.hide_secret(&expanded.text);
        }
        for (value, shown) in &expanded.used {
            self.report.hide(value, shown);
        }
        leaf::text(&expanded.text, def, schema)?;
        Ok(expanded.text.into())
    }

    /// A folder below the home of whoever runs this, written as `~/…`.
    fn at_home(&self, value: Value, path: &str) -> Result<Value, Fault> {
        let key = path.rsplit('.').next().unwrap_or_default();
        let key = key.split('[').next().unwrap_or_default();
        let below = value.as_str().and_then(|text| text.strip_prefix('~'));
        match below.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(rest) if FOLDERS.contains(&key) => {
                let home = (self.lookup)(Source::Env("HOME"));
                let home = home
                    .map_err(|why| Fault::new(format!("~ is not known: HOME {why}"), "write the whole path"));
                Ok(format!("{}{rest}", home?.trim_end_matches('/')).into())
            }
            _ => Ok(value),
        }
    }

    /// The proper name and the schema of a key, if the table has such a key.
    fn property(&self, schema: &'a Value, key: &str) -> Option<(String, &'a Value)> {
        let known = |key: &str| schema["properties"].get(key).map(|inner| (key.to_owned(), inner));
        let cameled = || self.camel.then(|| known(&name::snake(key))).flatten();
        let named_by_user =
            || Some((key.to_owned(), schema.get("additionalProperties").filter(|s| s.is_object())?));
        known(key).or_else(cameled).or_else(named_by_user)
    }

    /// What to write in the place of a key that other gateways have, or else the nearest of ours.
    fn correction(&self, path: &str, key: &str, schema: &Value) -> String {
        let section = path.rsplit('.').next().unwrap_or_default();
        let foreign = FOREIGN_KEYS.iter().find(|(of, name, _)| *of == section && *name == key);
        foreign.map_or_else(|| self.suggest(key, schema), |(_, _, hint)| (*hint).to_owned())
    }

    fn suggest(&self, key: &str, schema: &Value) -> String {
        let keys = schema["properties"].as_object().into_iter().flat_map(Map::keys);
        let keys: Vec<String> =
            keys.map(|key| if self.camel { name::camel(key) } else { key.clone() }).collect();
        name::suggest(key, &keys.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Follows references and steps over the `null` of an optional value, to the name and schema of the type.
    fn follow(&self, schema: &'a Value) -> (Option<&'a str>, &'a Value) {
        let optional =
            schema["anyOf"].as_array().and_then(|any| any.iter().find(|one| one["type"] != "null"));
        let schema = optional.unwrap_or(schema);
        let def = schema["$ref"].as_str().and_then(|target| target.strip_prefix("#/$defs/"));
        def.map_or((None, schema), |def| (Some(def), &self.root["$defs"][def]))
    }
}
