//! Checks values against a subset of JSON Schema: types, fields, items and enumerations. Other keywords are ignored.

use serde_json::Value;

pub fn matches_schema(value: &Value, schema: &Value) -> bool {
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        return false;
    }
    has_type(value, &schema["type"]) && has_fields(value, schema) && has_items(value, &schema["items"])
}

/// All JSON types.
const JSON_TYPES: [&str; 7] = ["object", "array", "string", "boolean", "null", "number", "integer"];

/// Returns what makes a schema unusable, if anything. Keywords that are ignored are not checked.
pub fn find_schema_error(schema: &Value) -> Option<String> {
    if schema.is_boolean() {
        return None;
    }
    let Some(parts) = schema.as_object() else { return Some(format!("{schema} is not an object")) };
    let one = |name: &Value| match name.as_str() {
        Some(name) if JSON_TYPES.contains(&name) => None,
        _ => Some(format!("{name} is not a JSON type")),
    };
    let wrong_type = match parts.get("type") {
        None => None,
        Some(Value::Array(names)) => names.iter().find_map(one),
        Some(name) => one(name),
    };
    let is_list = |name: &str| parts.get(name).is_none_or(Value::is_array);
    let wrong_list = ["enum", "required"].into_iter().find(|name| !is_list(name));
    let fields = parts.get("properties").and_then(Value::as_object).into_iter().flatten();
    wrong_type
        .or_else(|| wrong_list.map(|name| format!("{name} is not a list")))
        .or_else(|| fields.map(|(_, field)| field).chain(parts.get("items")).find_map(find_schema_error))
}

fn has_type(value: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::String(name) => is_type(value, name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(|name| is_type(value, name)),
        _ => true,
    }
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0),
        _ => true,
    }
}

fn has_fields(value: &Value, schema: &Value) -> bool {
    let Some(fields) = value.as_object() else { return true };
    let mut required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let known = schema["properties"].as_object();
    let fit = |(name, field): (&String, &Value)| match known.and_then(|known| known.get(name)) {
        Some(schema) => matches_schema(field, schema),
        None => schema["additionalProperties"] != Value::Bool(false),
    };
    required.all(|name| fields.contains_key(name)) && fields.iter().all(fit)
}

fn has_items(value: &Value, schema: &Value) -> bool {
    value.as_array().is_none_or(|items| items.iter().all(|item| matches_schema(item, schema)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invalid_json_schema_is_reported() {
        for (schema, wrong) in [
            (json!({}), None),
            (json!(true), None),
            (json!({ "type": ["integer", "null"], "format": "x" }), None),
            (json!({ "type": "nonsense" }), Some("\"nonsense\" is not a JSON type")),
            (json!({ "type": ["string", 3] }), Some("3 is not a JSON type")),
            (json!("object"), Some("\"object\" is not an object")),
            (json!({ "required": "name" }), Some("required is not a list")),
            (
                json!({ "properties": { "a": { "items": { "type": "x" } } } }),
                Some("\"x\" is not a JSON type"),
            ),
        ] {
            assert_eq!(find_schema_error(&schema).as_deref(), wrong, "{schema}");
        }
    }

    #[test]
    fn value_is_checked_against_every_schema_keyword() {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["name", "tags"],
            "properties": {
                "name": { "type": "string" }, "tags": { "type": "array", "items": { "enum": ["a", "b"] } },
                "count": { "type": ["integer", "null"] },
            },
        });
        assert!(matches_schema(&json!({ "name": "x", "tags": ["a"], "count": 3 }), &schema));
        assert!(matches_schema(&json!({ "name": "x", "tags": [], "count": null }), &schema));
        for bad in [
            json!(null),
            json!({ "tags": [] }),
            json!({ "name": 1, "tags": [] }),
            json!({ "name": "x", "tags": ["c"] }),
            json!({ "name": "x", "tags": [], "count": 1.5 }),
            json!({ "name": "x", "tags": [], "more": 1 }),
        ] {
            assert!(!matches_schema(&bad, &schema), "{bad}");
        }
    }
}
