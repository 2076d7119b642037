//! Parses JSON5 to a tree with line numbers. The parser reports no positions, but it borrows keys and texts from the
//! input, and the start of a borrowed text is a position.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{ConfigNode, LineIndex, NodeKind, SyntaxError};

pub(super) fn parse_document(text: &str) -> Result<ConfigNode, SyntaxError> {
    let lines = LineIndex::for_text(text);
    let mut parser = json5::Deserializer::from_str(text);
    let root = ValueSeed { text, lines: &lines, line: 1 };
    let root = root.deserialize(&mut parser).map_err(|error| syntax_error(&error, &lines, text))?;
    match TrailingText::deserialize(&mut parser) {
        Err(error) if error.code() != Some(json5::ErrorCode::EofParsingValue) => {
            Err(syntax_error(&error, &lines, text))
        }
        _ => Ok(root),
    }
}

fn syntax_error(error: &json5::Error, lines: &LineIndex, text: &str) -> SyntaxError {
    let line = error.position().map_or_else(|| lines.line_at(text.len()), |position| position.line + 1);
    let message = error.code().map_or_else(|| error.to_string(), |code| code.to_string());
    let message = message.split(" at line ").next().unwrap_or_default();
    SyntaxError {
        line: Some(line),
        message: message.replace("EOF parsing", "the file ends too early, in this:"),
    }
}

/// The position of the next value.
#[derive(Clone, Copy)]
struct ValueSeed<'a> {
    text: &'a str,
    lines: &'a LineIndex,
    line: usize,
}

impl ValueSeed<'_> {
    fn build_node<E>(self, kind: NodeKind) -> Result<ConfigNode, E> {
        Ok(ConfigNode::new(self.line, kind))
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = ConfigNode;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ConfigNode, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = ConfigNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<ConfigNode, E> {
        self.build_node(NodeKind::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<ConfigNode, E> {
        self.build_node(NodeKind::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<ConfigNode, E> {
        self.build_node(NodeKind::Int(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<ConfigNode, E> {
        #[allow(clippy::cast_precision_loss)]
        self.build_node(i64::try_from(value).map_or(NodeKind::Float(value as f64), NodeKind::Int))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<ConfigNode, E> {
        self.build_node(NodeKind::from_number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<ConfigNode, E> {
        self.build_node(NodeKind::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ConfigNode, A::Error> {
        let mut items = Vec::new();
        while let Some(mut item) = seq.next_element_seed(self)? {
            // A list has no keys to borrow. If its items are tables, their first key gives the approximate line.
            if let NodeKind::Table(entries) = &item.kind {
                item.line = entries.first().map_or(item.line, |(_, first)| first.line);
            }
            items.push(item);
        }
        self.build_node(NodeKind::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ConfigNode, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, line)) = map.next_key_seed(KeySeed(self))? {
            entries.push((key, map.next_value_seed(ValueSeed { line, ..self })?));
        }
        self.build_node(NodeKind::Table(entries))
    }
}

struct KeySeed<'a>(ValueSeed<'a>);

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = (String, usize);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeySeed<'_> {
    type Value = (String, usize);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Self::Value, E> {
        let offset = key.as_ptr().addr().saturating_sub(self.0.text.as_ptr().addr());
        Ok((key.to_owned(), self.0.lines.line_at(offset)))
    }

    /// A key with escapes is not borrowed, so it gets the line of its parent.
    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok((key.to_owned(), self.0.line))
    }
}

/// Text after the value, which is an error.
struct TrailingText;

impl<'de> Deserialize<'de> for TrailingText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(Self)
    }
}

impl<'de> Visitor<'de> for TrailingText {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the end")
    }

    fn visit_none<E: Error>(self) -> Result<Self, E> {
        Err(E::custom("text after the closing brace"))
    }

    fn visit_some<D: Deserializer<'de>>(self, _: D) -> Result<Self, D::Error> {
        Err(D::Error::custom("text after the closing brace"))
    }
}
