//! Checks a config tree against the schema: unknown keys, wrong types, numbers out of range, misspelled words. One walk
//! finds all errors with their lines, which a derived deserializer cannot do.

mod leaf;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::document::{ConfigNode, NodeKind};
use super::expand::{self, ExternalReference, ReferenceLookup};
use super::key_names;
use super::report::{ConfigFault, ConfigReport};
use crate::redact;

/// Keys of other gateways: the section, the key, and what to write instead.
const FOREIGN_KEYS: [(&str, &str, &str); 3] = [
    ("sandbox", "scope", "remove it: every agent has its own sandbox"),
    ("intent_classifier", "enabled", "remove it: the classifier is enabled if model is set"),
    ("identity", "theme", "remove it, and put it into SOUL.md of the agent's workspace"),
];

/// Keys that contain folders.
const FOLDER_KEYS: [&str; 4] = ["workspace", "dir", "cwd", "folders"];

pub(super) struct SchemaWalker<'a> {
    root: &'a Value,
    /// In JSON5, keys are written in camelCase. Names chosen by users are not converted.
    camel: bool,
    lookup: ReferenceLookup<'a>,
    report: &'a mut ConfigReport,
}

impl<'a> SchemaWalker<'a> {
    pub fn new(
        root: &'a Value,
        camel: bool,
        lookup: ReferenceLookup<'a>,
        report: &'a mut ConfigReport,
    ) -> Self {
        Self { root, camel, lookup, report }
    }

    /// Returns the tree as plain JSON with canonical keys and resolved texts. Invalid parts are reported and omitted.
    pub fn build_value(mut self, root: ConfigNode) -> Value {
        self.walk_node(root, self.root, "").unwrap_or_else(|| Value::Object(Map::new()))
    }

    fn walk_node(&mut self, mut node: ConfigNode, schema: &'a Value, path: &str) -> Option<Value> {
        self.report.record_location(path, &node);
        let (def, schema) = self.resolve_schema_ref(schema);
        let kind = std::mem::replace(&mut node.kind, NodeKind::Null);
        let found = kind.type_phrase();
        match (leaf::schema_types(schema), kind) {
            (types, NodeKind::Table(entries)) if types.contains(&"object") => {
                Some(self.walk_table(&node, entries, schema, path))
            }
            (types, NodeKind::List(items)) if types.contains(&"array") => {
                Some(self.walk_list(items, &schema["items"], path))
            }
            (types, NodeKind::Text(text)) if types.contains(&"string") => {
                let value =
                    self.resolve_text(&text, def, schema).and_then(|value| self.expand_home(value, path));
                self.report_fault(value, path, &node)
            }
            (types, NodeKind::Bool(value)) if types.contains(&"boolean") => Some(value.into()),
            (types, NodeKind::Int(value)) if leaf::is_numeric(&types) => {
                self.report_fault(leaf::check_integer(value, schema), path, &node)
            }
            (types, NodeKind::Float(value)) if leaf::is_numeric(&types) => {
                self.report_fault(leaf::check_float(value, &types, schema), path, &node)
            }
            (types, _) => {
                let fault =
                    ConfigFault::new(format!("expected {}, found {found}", leaf::types_phrase(&types)), "");
                self.report_fault(Err(fault), path, &node)
            }
        }
    }

    fn report_fault(
        &mut self,
        value: Result<Value, ConfigFault>,
        path: &str,
        node: &ConfigNode,
    ) -> Option<Value> {
        value.map_err(|fault| self.report.add_unreadable_value(path, node, fault)).ok()
    }

    fn walk_table(
        &mut self,
        parent: &ConfigNode,
        entries: Vec<(String, ConfigNode)>,
        schema: &'a Value,
        path: &str,
    ) -> Value {
        let mut out = Map::new();
        let mut seen = BTreeSet::new();
        for (key, node) in entries {
            let Some((key, inner)) = self.find_property(schema, &key) else {
                let fault = ConfigFault::new("unknown key", self.suggest_correction(path, &key, schema));
                self.report.add_unreadable_value(&key_names::join_key(path, &key), &node, fault);
                continue;
            };
            // `null` in JSON5 means "not set".
            if matches!(node.kind, NodeKind::Null) {
                continue;
            }
            let path = key_names::join_key(path, &key);
            if seen.contains(&key) {
                self.report.add_unreadable_value(
                    &path,
                    &node,
                    ConfigFault::new(format!("{key} is given twice"), "keep one of them"),
                );
            } else if let Some(value) = self.walk_node(node, inner, &path) {
                out.insert(key.clone(), value);
            }
            seen.insert(key);
        }
        self.report_missing_keys(parent, &seen, schema, path);
        Value::Object(out)
    }

    fn report_missing_keys(
        &mut self,
        parent: &ConfigNode,
        seen: &BTreeSet<String>,
        schema: &Value,
        path: &str,
    ) {
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        // A model is given by one key or by two.
        let is_model = schema["properties"].get("primary").is_some() && !seen.contains("primary");
        let parts = ["provider", "model"].into_iter().filter(|_| is_model);
        for key in required.chain(parts).filter(|key| !seen.contains(*key)) {
            self.report.add_unreadable_value(
                path,
                parent,
                ConfigFault::new(format!("{key} is missing"), format!("add {key} = …")),
            );
        }
    }

    fn walk_list(&mut self, items: Vec<ConfigNode>, schema: &'a Value, path: &str) -> Value {
        let item = |(index, node)| self.walk_node(node, schema, &format!("{path}[{index}]"));
        items.into_iter().enumerate().filter_map(item).collect()
    }

    fn resolve_text(&mut self, text: &str, def: Option<&str>, schema: &Value) -> Result<Value, ConfigFault> {
        if schema["writeOnly"] == true {
            let value = expand::resolve_secret(text, self.lookup)?;
            self.report.redact_secret(&value);
            return Ok(value.into());
        }
        let expanded = expand::expand_variables(text, self.lookup)?;
        // This comes before the parts are masked: a text with masked parts would not be found as a whole.
        if !redact::url_credentials(&expanded.text).is_empty() {
            self.report.redact_secret(&expanded.text);
        }
        for (value, shown) in &expanded.used {
            self.report.redact_value(value, shown);
        }
        leaf::check_text(&expanded.text, def, schema)?;
        Ok(expanded.text.into())
    }

    /// Expands `~/…` in a folder to the home of the current user.
    fn expand_home(&self, value: Value, path: &str) -> Result<Value, ConfigFault> {
        let key = path.rsplit('.').next().unwrap_or_default();
        let key = key.split('[').next().unwrap_or_default();
        let below = value.as_str().and_then(|text| text.strip_prefix('~'));
        match below.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(rest) if FOLDER_KEYS.contains(&key) => {
                let home = (self.lookup)(ExternalReference::Env("HOME"));
                let home = home.map_err(|why| {
                    ConfigFault::new(format!("cannot expand ~: HOME {why}"), "use an absolute path")
                });
                Ok(format!("{}{rest}", home?.trim_end_matches('/')).into())
            }
            _ => Ok(value),
        }
    }

    /// Returns the canonical name and the schema of a key, if the table has it.
    fn find_property(&self, schema: &'a Value, key: &str) -> Option<(String, &'a Value)> {
        let known = |key: &str| schema["properties"].get(key).map(|inner| (key.to_owned(), inner));
        let cameled = || self.camel.then(|| known(&key_names::to_snake_case(key))).flatten();
        let named_by_user =
            || Some((key.to_owned(), schema.get("additionalProperties").filter(|s| s.is_object())?));
        known(key).or_else(cameled).or_else(named_by_user)
    }

    /// Returns the correction for a key of other gateways, else the most similar key.
    fn suggest_correction(&self, path: &str, key: &str, schema: &Value) -> String {
        let section = path.rsplit('.').next().unwrap_or_default();
        let foreign = FOREIGN_KEYS.iter().find(|(of, name, _)| *of == section && *name == key);
        foreign.map_or_else(|| self.suggest_key(key, schema), |(_, _, hint)| (*hint).to_owned())
    }

    fn suggest_key(&self, key: &str, schema: &Value) -> String {
        let keys = schema["properties"].as_object().into_iter().flat_map(Map::keys);
        let keys: Vec<String> =
            keys.map(|key| if self.camel { key_names::to_camel_case(key) } else { key.clone() }).collect();
        key_names::suggest_word(key, &keys.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Resolves references and the `null` of optional values to the name and schema of the type.
    fn resolve_schema_ref(&self, schema: &'a Value) -> (Option<&'a str>, &'a Value) {
        let optional =
            schema["anyOf"].as_array().and_then(|any| any.iter().find(|one| one["type"] != "null"));
        let schema = optional.unwrap_or(schema);
        let def = schema["$ref"].as_str().and_then(|target| target.strip_prefix("#/$defs/"));
        def.map_or((None, schema), |def| (Some(def), &self.root["$defs"][def]))
    }
}
