//! Changes to a TOML text that leave everything else as it was: comments, order, spaces.

use serde_json::{Map, Value as Json};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use crate::error::{Error, Result};

/// A part of a path to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

pub fn parse(text: &str) -> Result<DocumentMut> {
    text.parse().map_err(|error: toml_edit::TomlError| Error::NotToml(error.message().to_owned()))
}

/// A JSON merge patch, on the text: `null` takes out, a table goes into a table, a list is replaced whole.
pub fn merge(text: &str, patch: &Json) -> Result<String> {
    let mut document = parse(text)?;
    match patch {
        Json::Object(patch) => merge_table(document.as_table_mut(), patch)?,
        _ => return Err(Error::NotToml("a patch is a table".to_owned())),
    }
    Ok(document.to_string())
}

fn merge_table(table: &mut dyn TableLike, patch: &Map<String, Json>) -> Result<()> {
    for (key, value) in patch {
        match value {
            Json::Null => drop(table.remove(key)),
            Json::Object(inner) => {
                if !table.get(key).is_some_and(Item::is_table_like) {
                    table.insert(key, new_table(table.get(key)));
                }
                if let Some(below) = table.get_mut(key).and_then(Item::as_table_like_mut) {
                    merge_table(below, inner)?;
                }
            }
            Json::Array(items) if !items.is_empty() && items.iter().all(Json::is_object) => {
                table.insert(key, Item::ArrayOfTables(tables(items)?));
            }
            other => put(table, key, scalar(other)?),
        }
    }
    Ok(())
}

/// Within a value on one line a table is on that line too.
fn new_table(there: Option<&Item>) -> Item {
    match there {
        Some(Item::Value(Value::InlineTable(_))) => Item::Value(InlineTable::new().into()),
        _ => Item::Table(Table::new()),
    }
}

/// The comment behind a value stays.
fn put(table: &mut dyn TableLike, key: &str, mut value: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => drop(table.insert(key, Item::Value(value))),
    }
}

fn tables(items: &[Json]) -> Result<ArrayOfTables> {
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

fn scalar(value: &Json) -> Result<Value> {
    Ok(match value {
        Json::Bool(flag) => (*flag).into(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(real)) => real.into(),
            (None, None) => return Err(Error::NotToml(format!("{number} is too large"))),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => items.iter().map(scalar).collect::<Result<Array>>()?.into(),
        Json::Object(map) => {
            let mut table = InlineTable::new();
            for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
                table.insert(key, scalar(value)?);
            }
            table.into()
        }
        Json::Null => return Err(Error::NotToml("a list can not hold null".to_owned())),
    })
}

/// A document as JSON, to be looked at.
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

/// Puts a text where one stands.
pub fn set_text(document: &mut DocumentMut, path: &[Step], text: &str) {
    let mut item = Some(document.as_item_mut());
    for step in path {
        item = item.and_then(|item| match step {
            Step::Key(key) => item.get_mut(key.as_str()),
            Step::Index(at) => item.get_mut(*at),
        });
    }
    if let Some(old) = item.and_then(Item::as_value_mut) {
        let mut value = Value::from(text);
        *value.decor_mut() = old.decor().clone();
        *old = value;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = "# The head.\nschema = 1 # always\n\n[gateway] # where\nport = 18801 # the port\n\n# People.\n[agents]\nlist = [{ id = \"main\" }]\n";

    #[test]
    fn what_a_patch_does_not_name_stays_letter_by_letter() {
        let patch = json!({ "gateway": { "port": 18900 } });
        assert_eq!(merge(TEXT, &patch).unwrap(), TEXT.replace("18801", "18900"));
        assert_eq!(merge(TEXT, &json!({})).unwrap(), TEXT);
    }

    #[test]
    fn a_patch_adds_replaces_and_takes_out() {
        let patch = json!({
            "gateway": null,
            "providers": { "lab": { "models": ["a", "b"], "base_url": "http://x" } },
            "agents": { "list": [{ "id": "ops" }], "defaults": { "model": "lab/a" } },
        });
        let text = merge(TEXT, &patch).unwrap();
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
    fn a_text_is_put_where_one_stands_also_in_lists() {
        let mut document = parse("[[hooks]]\nsecret = \"a\" # mine\n").unwrap();
        let path = [Step::Key("hooks".into()), Step::Index(0), Step::Key("secret".into())];
        set_text(&mut document, &path, "b");
        assert_eq!(document.to_string(), "[[hooks]]\nsecret = \"b\" # mine\n");
        set_text(&mut document, &[Step::Key("nothing".into())], "c");
        assert_eq!(document.to_string(), "[[hooks]]\nsecret = \"b\" # mine\n");
    }
}
