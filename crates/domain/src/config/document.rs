//! A config file as a tree that records the line of each value.

mod json;
mod toml;

use super::key_names;
use crate::nesting;

pub(super) struct ConfigNode {
    pub line: usize,
    /// The path as the user wrote it, for messages: `agents.entries.ops.systemPrompt`.
    pub written: String,
    pub kind: NodeKind,
}

pub(super) enum NodeKind {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// A TOML date; no setting is one.
    Date,
    List(Vec<ConfigNode>),
    Table(Vec<(String, ConfigNode)>),
}

pub(super) struct SyntaxError {
    pub line: Option<usize>,
    pub message: String,
}

pub(super) fn is_json(text: &str, file: &str) -> bool {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let looks_so = ["{", "//", "/*"].iter().any(|opening| start.starts_with(opening));
    looks_so || file.ends_with(".json") || file.ends_with(".json5")
}

pub(super) fn parse_document(text: &str, file: &str) -> Result<ConfigNode, SyntaxError> {
    let json = is_json(text, file);
    let text = text.trim_start_matches('\u{feff}');
    let depth = if json { nesting::check_json(text) } else { nesting::check_toml(text) };
    depth.map_err(|deep| SyntaxError { line: Some(deep.line), message: deep.to_string() })?;
    let mut root = if json { json::parse_document(text)? } else { toml::parse_document(text)? };
    root.name(String::new());
    root.merge_agent_entries();
    Ok(root)
}

impl ConfigNode {
    fn new(line: usize, kind: NodeKind) -> Self {
        Self { line, written: String::new(), kind }
    }

    fn name(&mut self, path: String) {
        match &mut self.kind {
            NodeKind::Table(entries) => {
                for (key, node) in entries {
                    node.name(key_names::join_key(&path, key));
                }
            }
            NodeKind::List(items) => {
                for (index, node) in items.iter_mut().enumerate() {
                    node.name(format!("{path}[{index}]"));
                }
            }
            _ => {}
        }
        self.written = path;
    }

    /// Merges `agents.entries` (a table by id) into `agents.list`. Each node keeps the path it was written under, so
    /// messages still name the entry.
    fn merge_agent_entries(&mut self) {
        let Some(NodeKind::Table(agents)) = self.child_mut("agents").map(|node| &mut node.kind) else {
            return;
        };
        let Some(at) = agents.iter().position(|(key, node)| key == "entries" && node.is_table()) else {
            return;
        };
        let (_, entries) = agents.remove(at);
        let (line, written) = (entries.line, entries.written.clone());
        let NodeKind::Table(entries) = entries.kind else { return };
        let items = entries.into_iter().map(|(id, node)| node.with_id(id));
        match agents.iter_mut().find(|(key, _)| key == "list").map(|(_, node)| &mut node.kind) {
            Some(NodeKind::List(list)) => list.extend(items),
            _ => {
                let list = ConfigNode { line, written, kind: NodeKind::List(items.collect()) };
                agents.push(("list".to_owned(), list));
            }
        }
    }

    fn with_id(mut self, id: String) -> Self {
        if let NodeKind::Table(keys) = &mut self.kind {
            let node = Self { line: self.line, written: self.written.clone(), kind: NodeKind::Text(id) };
            keys.insert(0, ("id".to_owned(), node));
        }
        self
    }

    fn child_mut(&mut self, key: &str) -> Option<&mut Self> {
        let NodeKind::Table(entries) = &mut self.kind else { return None };
        entries.iter_mut().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    fn is_table(&self) -> bool {
        matches!(self.kind, NodeKind::Table(_))
    }
}

impl NodeKind {
    /// A whole number may be written as `1e3`.
    fn from_number(value: f64) -> Self {
        const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
        #[allow(clippy::cast_possible_truncation)]
        if value.fract() == 0.0 && value.abs() <= MAX_EXACT_INTEGER {
            Self::Int(value as i64)
        } else {
            Self::Float(value)
        }
    }

    pub fn type_phrase(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "true or false",
            Self::Int(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Text(_) => "text",
            Self::Date => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Maps a byte offset to a line number, counted from 1.
struct LineIndex(Vec<usize>);

impl LineIndex {
    fn for_text(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(offset, _)| offset).collect())
    }

    fn line_at(&self, offset: usize) -> usize {
        self.0.partition_point(|newline| *newline < offset) + 1
    }
}
