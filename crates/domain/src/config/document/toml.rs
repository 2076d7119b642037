//! TOML to a tree with lines.

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::{Kind, Lines, Node, Syntax};

pub(super) fn read(text: &str) -> Result<Node, Syntax> {
    let lines = Lines::of(text);
    let table = DeTable::parse(text).map_err(|error| Syntax {
        line: error.span().map(|span| lines.at(span.start)),
        message: error.message().replace('\n', " "),
    })?;
    Ok(Node::new(1, table_kind(table.into_inner(), &lines)))
}

fn table_kind(table: DeTable<'_>, lines: &Lines) -> Kind {
    let entry = |(key, value): (Spanned<_>, Spanned<DeValue<'_>>)| {
        let line = lines.at(key.span().start);
        let key: std::borrow::Cow<'_, str> = key.into_inner();
        (key.into_owned(), Node::new(line, kind(value.into_inner(), lines)))
    };
    Kind::Table(table.into_iter().map(entry).collect())
}

fn kind(value: DeValue<'_>, lines: &Lines) -> Kind {
    match value {
        DeValue::String(text) => Kind::Text(text.into_owned()),
        DeValue::Integer(number) => integer(&number),
        DeValue::Float(number) => Kind::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(value) => Kind::Bool(value),
        DeValue::Datetime(_) => Kind::Date,
        DeValue::Array(items) => Kind::List(
            items
                .into_iter()
                .map(|item| Node::new(lines.at(item.span().start), kind(item.into_inner(), lines)))
                .collect(),
        ),
        DeValue::Table(table) => table_kind(table, lines),
    }
}

/// What does not fit is kept as a float, so that the range check refuses it and names the range.
fn integer(number: &DeInteger<'_>) -> Kind {
    match i64::from_str_radix(number.as_str(), number.radix()) {
        Ok(value) => Kind::Int(value),
        Err(_) => Kind::Float(number.as_str().parse().unwrap_or(f64::INFINITY)),
    }
}
