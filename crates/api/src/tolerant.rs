//! Reads types of the domain that reject unknown fields, as config types do, from responses of a newer server.

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Error as _, IntoDeserializer, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use serde_json::{Error, Map, Value};

/// Deserializes a value and ignores fields that its type does not know, at any depth.
pub fn ignore_unknown_fields<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    T::deserialize(KnownFields(Value::deserialize(from)?)).map_err(D::Error::custom)
}

/// Removes unknown fields from every struct before its type sees them.
struct KnownFields(Value);

fn known_entries(fields: Map<String, Value>) -> impl Iterator<Item = (String, KnownFields)> {
    fields.into_iter().map(|(name, value)| (name, KnownFields(value)))
}

impl<'de> Deserializer<'de> for KnownFields {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => {
                visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(KnownFields)))
            }
            Value::Object(fields) => visitor.visit_map(MapDeserializer::new(known_entries(fields))),
            plain => plain.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        _name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if let Value::Object(fields) = &mut self.0 {
            fields.retain(|name, _| known.contains(&name.as_str()));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(fields) => {
                visitor.visit_enum(MapAccessDeserializer::new(MapDeserializer::new(known_entries(fields))))
            }
            plain => plain.deserialize_enum(name, variants, visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

impl IntoDeserializer<'_, Error> for KnownFields {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        name: Option<String>,
        inner: Vec<Inner>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        share: f64,
    }

    #[test]
    fn unknown_fields_are_ignored_at_any_depth() {
        let given = json!({ "name": "a", "inner": [{ "share": 1, "new": {} }], "newer": [1] });
        let read: Outer = ignore_unknown_fields(given.clone()).unwrap();
        assert_eq!(read, Outer { name: Some("a".to_owned()), inner: vec![Inner { share: 1.0 }] });
        assert!(Outer::deserialize(given).is_err());
        assert!(ignore_unknown_fields::<Outer, _>(json!({ "inner": 1 })).is_err());
    }
}
