//! Parses TOML to a tree with line numbers.

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::{ConfigNode, LineIndex, NodeKind, SyntaxError};

pub(super) fn parse_document(text: &str) -> Result<ConfigNode, SyntaxError> {
    let lines = LineIndex::for_text(text);
    let table = DeTable::parse(text).map_err(|error| SyntaxError {
        line: error.span().map(|span| lines.line_at(span.start)),
        message: error.message().replace('\n', " "),
    })?;
    Ok(ConfigNode::new(1, table_kind(table.into_inner(), &lines)))
}

fn table_kind(table: DeTable<'_>, lines: &LineIndex) -> NodeKind {
    let entry = |(key, value): (Spanned<_>, Spanned<DeValue<'_>>)| {
        let line = lines.line_at(key.span().start);
        let key: std::borrow::Cow<'_, str> = key.into_inner();
        (key.into_owned(), ConfigNode::new(line, node_kind(value.into_inner(), lines)))
    };
    NodeKind::Table(table.into_iter().map(entry).collect())
}

fn node_kind(value: DeValue<'_>, lines: &LineIndex) -> NodeKind {
    match value {
        DeValue::String(text) => NodeKind::Text(text.into_owned()),
        DeValue::Integer(number) => integer_kind(&number),
        DeValue::Float(number) => NodeKind::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(value) => NodeKind::Bool(value),
        DeValue::Datetime(_) => NodeKind::Date,
        DeValue::Array(items) => NodeKind::List(
            items
                .into_iter()
                .map(|item| {
                    ConfigNode::new(lines.line_at(item.span().start), node_kind(item.into_inner(), lines))
                })
                .collect(),
        ),
        DeValue::Table(table) => table_kind(table, lines),
    }
}

/// Converts an integer. One that is too large becomes a float, so that the range check reports it.
fn integer_kind(number: &DeInteger<'_>) -> NodeKind {
    match i64::from_str_radix(number.as_str(), number.radix()) {
        Ok(value) => NodeKind::Int(value),
        Err(_) => NodeKind::Float(number.as_str().parse().unwrap_or(f64::INFINITY)),
    }
}
