//! Edits a TOML text and keeps everything else as it was: comments, order, whitespace.

use polyclaw_domain::nesting;
use serde_json::{Map, Value as Json};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use crate::error::{Error, Result};

/// One step of a path to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    Key(String),
    Index(usize),
}

pub fn parse(text: &str) -> Result<DocumentMut> {
    nesting::check_toml(text)
        .map_err(|deep| Error::NotToml { line: Some(deep.line), why: deep.to_string() })?;
    // Only the message: the full error would print the line, with any secret in it.
    text.parse().map_err(|error: toml_edit::TomlError| Error::NotToml {
        line: error_line(text, &error),
        why: error.message().to_owned(),
    })
}

/// Returns the line number, counted from 1. A text in JSON has no line to blame.
fn error_line(text: &str, error: &toml_edit::TomlError) -> Option<usize> {
    let before = text.get(..error.span()?.start).filter(|_| !text.trim_start().starts_with('{'))?;
    Some(1 + before.matches('\n').count())
}

/// Applies a JSON merge patch to the text: `null` removes a value, tables are merged, lists are replaced.
pub fn merge_patch(text: &str, patch: &Json) -> Result<String> {
    let mut document = parse(text)?;
    match patch {
        Json::Object(patch) => merge_table(document.as_table_mut(), patch)?,
        _ => return Err(Error::not_toml("a patch must be a table")),
    }
    Ok(document.to_string())
}

fn merge_table(table: &mut dyn TableLike, patch: &Map<String, Json>) -> Result<()> {
    for (key, value) in patch {
        match value {
            Json::Null => drop(table.remove(key)),
            Json::Object(inner) => {
                let is_made = !table.get(key).is_some_and(Item::is_table_like);
                if is_made {
                    table.insert(key, new_table(table.get(key)));
                }
                if let Some(below) = table.get_mut(key).and_then(Item::as_table_like_mut) {
                    merge_table(below, inner)?;
                }
                if let Some(made) = table.get_mut(key).and_then(Item::as_table_mut).filter(|_| is_made) {
                    // An empty header is omitted if the tables below it have their own.
                    made.set_implicit(!made.is_empty() && made.iter().all(|(_, item)| has_header(item)));
                }
            }
            Json::Array(items) if !items.is_empty() && items.iter().all(Json::is_object) => {
                table.insert(key, Item::ArrayOfTables(to_array_of_tables(items)?));
            }
            other => set_value(table, key, to_toml_value(other)?),
        }
    }
    Ok(())
}

fn has_header(item: &Item) -> bool {
    item.is_table() || item.is_array_of_tables()
}

/// Appends an entry to a list of tables, in the style the list already uses.
pub fn append_entry(text: &str, list: &str, entry: &Json) -> Result<String> {
    let mut document = parse(text)?;
    add_entry(&mut document, list, entry)?;
    Ok(document.to_string())
}

fn add_entry(document: &mut DocumentMut, list: &str, entry: &Json) -> Result<()> {
    let there = find_list(document, list)?;
    if there.is_none() {
        *there = Item::ArrayOfTables(ArrayOfTables::new());
    }
    match (there, to_toml_value(entry)?) {
        (Item::ArrayOfTables(tables), Value::InlineTable(entry)) => {
            tables.push(entry.into_table());
        }
        (Item::Value(Value::Array(items)), entry) => items.push(entry),
        _ => return Err(Error::not_toml(format!("{list} is not a list of tables"))),
    }
    Ok(())
}

/// Removes the entries at these indices, with the comments above them.
pub fn remove_entries(text: &str, list: &str, places: &[usize]) -> Result<String> {
    let mut document = parse(text)?;
    let mut places = places.to_vec();
    places.sort_unstable_by(|a, b| b.cmp(a));
    for at in places {
        match find_list(&mut document, list)? {
            Item::ArrayOfTables(tables) if at < tables.len() => drop(tables.remove(at)),
            Item::Value(Value::Array(items)) if at < items.len() => drop(items.remove(at)),
            _ => return Err(Error::not_toml(format!("{list} has no entry {at}"))),
        }
    }
    Ok(document.to_string())
}

/// Merges a patch into the list entry with this name, or appends a new entry.
pub fn merge_named(text: &str, list: &str, (key, name): (&str, &str), patch: &Json) -> Result<String> {
    let mut document = parse(text)?;
    let is_named = |table: &dyn TableLike| table.get(key).and_then(Item::as_str) == Some(name);
    let Json::Object(fields) = patch else { return Err(Error::not_toml("a patch must be a table")) };
    let entry: Option<&mut dyn TableLike> = match find_list(&mut document, list)? {
        Item::ArrayOfTables(tables) => {
            tables.iter_mut().map(|table| table as &mut dyn TableLike).find(|table| is_named(&**table))
        }
        Item::Value(Value::Array(items)) => items
            .iter_mut()
            .filter_map(|item| item.as_inline_table_mut().map(|table| table as &mut dyn TableLike))
            .find(|table| is_named(&**table)),
        _ => None,
    };
    match entry {
        Some(entry) => merge_table(entry, fields)?,
        None => {
            let mut whole = Map::from_iter([(key.to_owned(), Json::from(name))]);
            whole.extend(fields.clone());
            add_entry(&mut document, list, &Json::Object(whole))?;
        }
    }
    Ok(document.to_string())
}

/// Finds a list such as `agents.list`, and creates missing tables above it.
fn find_list<'a>(document: &'a mut DocumentMut, list: &str) -> Result<&'a mut Item> {
    let (above, key) = list.rsplit_once('.').unwrap_or(("", list));
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in above.split('.').filter(|name| !name.is_empty()) {
        let below = table.entry(name).or_insert_with(|| {
            let mut made = Table::new();
            made.set_implicit(true);
            Item::Table(made)
        });
        table = below.as_table_like_mut().ok_or_else(|| Error::not_toml(format!("{name} is not a table")))?;
    }
    Ok(table.entry(key).or_insert(Item::None))
}

/// Inside an inline table, a new table is inline too.
fn new_table(there: Option<&Item>) -> Item {
    match there {
        Some(Item::Value(Value::InlineTable(_))) => Item::Value(InlineTable::new().into()),
        _ => Item::Table(Table::new()),
    }
}

/// Sets a value and keeps the comment behind it.
fn set_value(table: &mut dyn TableLike, key: &str, mut value: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => drop(table.insert(key, Item::Value(value))),
    }
}

fn to_array_of_tables(items: &[Json]) -> Result<ArrayOfTables> {
    let mut list = ArrayOfTables::new();
    for item in items {
        let mut table = Table::new();
        if let Json::Object(map) = item {
            merge_table(&mut table, map)?;
        }
        list.push(table);
    }
    Ok(list)
}

fn to_toml_value(value: &Json) -> Result<Value> {
    Ok(match value {
        Json::Bool(flag) => (*flag).into(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(real)) => real.into(),
            (None, None) => return Err(Error::not_toml(format!("{number} is too large"))),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => items.iter().map(to_toml_value).collect::<Result<Array>>()?.into(),
        Json::Object(map) => {
            let mut table = InlineTable::new();
            for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
                table.insert(key, to_toml_value(value)?);
            }
            table.into()
        }
        Json::Null => return Err(Error::not_toml("a list cannot contain null")),
    })
}

/// Converts a document to JSON for reading.
pub fn to_json(item: &Item) -> Json {
    match item {
        Item::None => Json::Null,
        Item::Value(value) => value_to_json(value),
        Item::Table(table) => table_to_json(table),
        Item::ArrayOfTables(list) => list.iter().map(|table| table_to_json(table)).collect(),
    }
}

fn table_to_json(table: &dyn TableLike) -> Json {
    Json::Object(table.iter().map(|(key, item)| (key.to_owned(), to_json(item))).collect())
}

fn value_to_json(value: &Value) -> Json {
    match value {
        Value::String(text) => text.value().as_str().into(),
        Value::Integer(whole) => (*whole.value()).into(),
        Value::Float(real) => (*real.value()).into(),
        Value::Boolean(flag) => (*flag.value()).into(),
        Value::Datetime(date) => date.value().to_string().into(),
        Value::Array(items) => items.iter().map(value_to_json).collect(),
        Value::InlineTable(table) => table_to_json(table),
    }
}

/// Replaces the value at a path by a text, whatever its type.
pub fn set_text(document: &mut DocumentMut, path: &[PathStep], text: &str) {
    let mut item = Some(document.as_item_mut());
    for step in path {
        item = item.and_then(|item| match step {
            PathStep::Key(key) => item.get_mut(key.as_str()),
            PathStep::Index(at) => item.get_mut(*at),
        });
    }
    match item {
        Some(Item::Value(old)) => {
            let mut value = Value::from(text);
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        Some(tables) if !tables.is_none() => *tables = toml_edit::value(text),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = "# The head.\nschema = 1 # always\n\n[gateway] # where\nport = 18801 # the port\n\n# People.\n[agents]\nlist = [{ id = \"main\" }]\n";

    #[test]
    fn patch_leaves_other_config_text_unchanged() {
        let patch = json!({ "gateway": { "port": 18900 } });
        assert_eq!(merge_patch(TEXT, &patch).unwrap(), TEXT.replace("18801", "18900"));
        assert_eq!(merge_patch(TEXT, &json!({})).unwrap(), TEXT);
    }

    #[test]
    fn patch_adds_replaces_and_removes_values() {
        let patch = json!({
            "gateway": null,
            "providers": { "lab": { "models": ["a", "b"], "base_url": "http://x" } },
            "agents": { "list": [{ "id": "ops" }], "defaults": { "model": "lab/a" } },
        });
        let text = merge_patch(TEXT, &patch).unwrap();
        let now = to_json(parse(&text).unwrap().as_item());
        assert_eq!(
            now,
            json!({
                "schema": 1,
                "agents": { "list": [{ "id": "ops" }], "defaults": { "model": "lab/a" } },
                "providers": { "lab": { "models": ["a", "b"], "base_url": "http://x" } },
            })
        );
        assert!(text.starts_with("# The head.\nschema = 1 # always\n"), "{text}");
    }

    #[test]
    fn table_of_tables_gets_no_own_header() {
        let patch = json!({ "providers": { "lab": { "base_url": "http://x" }, "plain": {} } });
        let text = merge_patch("schema = 1\n", &patch).unwrap();
        assert!(!text.contains("[providers]\n"), "{text}");
        let now = to_json(parse(&text).unwrap().as_item());
        assert_eq!(now["providers"], patch["providers"], "what is empty stays: {text}");
        let without = merge_patch(&text, &json!({ "providers": { "lab": null, "plain": null } })).unwrap();
        assert_eq!(without, "schema = 1\n");
    }

    #[test]
    fn set_text_replaces_only_existing_text() {
        let mut document = parse("[[hooks]]\nsecret = \"a\" # mine\n").unwrap();
        let path = [PathStep::Key("hooks".into()), PathStep::Index(0), PathStep::Key("secret".into())];
        set_text(&mut document, &path, "b");
        assert_eq!(document.to_string(), "[[hooks]]\nsecret = \"b\" # mine\n");
        set_text(&mut document, &[PathStep::Key("nothing".into())], "c");
        assert_eq!(document.to_string(), "[[hooks]]\nsecret = \"b\" # mine\n");
    }

    const BOUND: &str = "# First.\n[[bindings]]\nagent_id = \"a\" # why\nmatch = { channel = \"x\" }\n\n# Second.\n[[bindings]]\nagent_id = \"b\"\nmatch = { channel = \"y\" }\n\n[turns]\nattempts = 2\n";

    #[test]
    fn entry_is_appended_without_changing_other_text() {
        let entry = json!({ "agent_id": "c", "match": { "channel": "z", "roles": ["r"] } });
        let text = append_entry(BOUND, "bindings", &entry).unwrap();
        let added = "[[bindings]]\nagent_id = \"c\"\nmatch = { channel = \"z\", roles = [\"r\"] }\n";
        assert_eq!(text.replace(added, "").replace("\n\n\n", "\n\n"), BOUND, "{text}");
        let now = to_json(parse(&text).unwrap().as_item());
        assert_eq!(now["bindings"][2], entry, "{text}");
        let first = append_entry("schema = 1\n", "bindings", &entry).unwrap();
        assert_eq!(to_json(parse(&first).unwrap().as_item())["bindings"], json!([entry]), "{first}");
        let inline = append_entry(TEXT, "agents.list", &json!({ "id": "ops" })).unwrap();
        let now = to_json(parse(&inline).unwrap().as_item());
        assert_eq!(now["agents"]["list"], json!([{ "id": "main" }, { "id": "ops" }]), "{inline}");
        assert!(append_entry(TEXT, "schema", &entry).is_err());
    }

    #[test]
    fn entries_are_removed_by_index() {
        let text = remove_entries(BOUND, "bindings", &[0]).unwrap();
        assert!(
            text.starts_with("\n# Second.\n[[bindings]]\nagent_id = \"b\"") && !text.contains("First"),
            "{text}"
        );
        let none = remove_entries(BOUND, "bindings", &[0, 1]).unwrap();
        assert!(!none.contains("bindings") && none.contains("attempts = 2"), "{none}");
        assert!(remove_entries(BOUND, "bindings", &[2]).is_err());
    }

    #[test]
    fn named_entry_is_merged_or_created() {
        let patch = json!({ "identity": { "emoji": "x" } });
        let text = merge_named(TEXT, "agents.list", ("id", "main"), &patch).unwrap();
        let now = to_json(parse(&text).unwrap().as_item());
        assert_eq!(now["agents"]["list"], json!([{ "id": "main", "identity": { "emoji": "x" } }]), "{text}");
        assert!(text.contains("# People.") && text.contains("# the port"));
        let made = merge_named("schema = 1\n", "agents.list", ("id", "main"), &patch).unwrap();
        let now = to_json(parse(&made).unwrap().as_item());
        assert_eq!(now["agents"]["list"][0]["identity"]["emoji"], "x", "{made}");
    }
}
