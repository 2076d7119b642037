//! JSON5 to a tree with lines. The parser tells no positions, but it lends keys and text from the input, and
//! where a loan begins is a position.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{Kind, Lines, Node, Syntax};

pub(super) fn read(text: &str) -> Result<Node, Syntax> {
    let lines = Lines::of(text);
    let mut parser = json5::Deserializer::from_str(text);
    let root = Place { text, lines: &lines, line: 1 };
    let root = root.deserialize(&mut parser).map_err(|error| syntax(&error, &lines, text))?;
    match Rest::deserialize(&mut parser) {
        Err(error) if error.code() != Some(json5::ErrorCode::EofParsingValue) => {
            Err(syntax(&error, &lines, text))
        }
        _ => Ok(root),
    }
}

fn syntax(error: &json5::Error, lines: &Lines, text: &str) -> Syntax {
    let line = error.position().map_or_else(|| lines.at(text.len()), |position| position.line + 1);
    let message = error.code().map_or_else(|| error.to_string(), |code| code.to_string());
    let message = message.split(" at line ").next().unwrap_or_default();
    Syntax { line: Some(line), message: message.replace("EOF parsing", "the file ends too early, in this:") }
}

/// Where in the text the next value stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    text: &'a str,
    lines: &'a Lines,
    line: usize,
}

impl Place<'_> {
    fn node<E>(self, kind: Kind) -> Result<Node, E> {
        Ok(Node::new(self.line, kind))
    }
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        self.node(Kind::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        self.node(Kind::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        self.node(Kind::Int(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        #[allow(clippy::cast_precision_loss)]
        self.node(i64::try_from(value).map_or(Kind::Float(value as f64), Kind::Int))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        self.node(Kind::number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Node, E> {
        self.node(Kind::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(mut item) = seq.next_element_seed(self)? {
            // A list has no keys to borrow; its tables have, and the first one marks the line well enough.
            if let Kind::Table(entries) = &item.kind {
                item.line = entries.first().map_or(item.line, |(_, first)| first.line);
            }
            items.push(item);
        }
        self.node(Kind::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, line)) = map.next_key_seed(Key(self))? {
            entries.push((key, map.next_value_seed(Place { line, ..self })?));
        }
        self.node(Kind::Table(entries))
    }
}

struct Key<'a>(Place<'a>);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = (String, usize);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key<'_> {
    type Value = (String, usize);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Self::Value, E> {
        let offset = key.as_ptr().addr().saturating_sub(self.0.text.as_ptr().addr());
        Ok((key.to_owned(), self.0.lines.at(offset)))
    }

    /// A key with escapes is a copy: it stands somewhere below its parent.
    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok((key.to_owned(), self.0.line))
    }
}

/// What follows the value: there must be nothing.
struct Rest;

impl<'de> Deserialize<'de> for Rest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(Self)
    }
}

impl<'de> Visitor<'de> for Rest {
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
