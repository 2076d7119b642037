//! Tool arguments: Rust types that parse them and describe them to the model.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ToolConsent, ToolEffect, ToolRisk, ToolSpec};

/// Parses the arguments of a call. Models send nothing for a tool whose arguments are all optional; that counts as an
/// empty object.
pub fn parse_arguments<A: DeserializeOwned>(arguments: &Value) -> Result<A, serde_json::Error> {
    let empty = Value::Object(serde_json::Map::new());
    let given = if arguments.is_null() { &empty } else { arguments };
    A::deserialize(given)
}

/// Returns the spec of a harmless tool that needs no approval. Callers change what differs.
pub fn build_tool_spec<A: JsonSchema>(name: &str, description: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: arguments_schema::<A>(),
        effect: ToolEffect::Pure,
        risk: ToolRisk::Low,
        consent: ToolConsent::NotNeeded,
        confined: true,
    }
}

fn arguments_schema<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    schema.remove("title");
    schema.remove("description");
    RecursiveTransform(simplify_schema).transform(&mut schema);
    schema.to_value()
}

/// Simplifies a schema, because several providers reject `null` as a second type and formats such as `uint32`. Optional
/// arguments are not in `required`; a `null` is still accepted.
fn simplify_schema(schema: &mut Schema) {
    schema.remove("format");
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::Array(kinds)) = object.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        /// The number of items.
        #[expect(dead_code)]
        count: Option<u32>,
    }

    #[test]
    fn optional_argument_schema_has_single_type() {
        let expected = serde_json::json!({
            "type": "object",
            "properties": { "count": { "description": "The number of items.", "type": "integer", "minimum": 0 } },
            "additionalProperties": false,
        });
        assert_eq!(arguments_schema::<Sample>(), expected);
    }

    #[test]
    fn missing_arguments_parse_and_unknown_ones_are_refused() {
        assert!(parse_arguments::<Sample>(&Value::Null).is_ok());
        let error = parse_arguments::<Sample>(&serde_json::json!({ "cuont": 1 })).unwrap_err();
        assert!(error.to_string().contains("cuont"), "{error}");
    }
}
