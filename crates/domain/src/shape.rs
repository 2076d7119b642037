//! Whether a value has the shape that a JSON Schema asks for: types, fields, items and choices. What it does not know of a
//! schema it does not hold against a value.

use serde_json::Value;

pub fn fits(value: &Value, schema: &Value) -> bool {
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        return false;
    }
    has_type(value, &schema["type"]) && has_fields(value, schema) && has_items(value, &schema["items"])
}

fn has_type(value: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::String(name) => is(value, name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(|name| is(value, name)),
        _ => true,
    }
}

fn is(value: &Value, name: &str) -> bool {
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
        Some(schema) => fits(field, schema),
        None => schema["additionalProperties"] != Value::Bool(false),
    };
    required.all(|name| fields.contains_key(name)) && fields.iter().all(fit)
}

fn has_items(value: &Value, schema: &Value) -> bool {
    value.as_array().is_none_or(|items| items.iter().all(|item| fits(item, schema)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_held_against_every_part_of_a_schema() {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["name", "tags"],
            "properties": {
                "name": { "type": "string" }, "tags": { "type": "array", "items": { "enum": ["a", "b"] } },
                "count": { "type": ["integer", "null"] },
            },
        });
        assert!(fits(&json!({ "name": "x", "tags": ["a"], "count": 3 }), &schema));
        assert!(fits(&json!({ "name": "x", "tags": [], "count": null }), &schema));
        for bad in [
            json!(null),
            json!({ "tags": [] }),
            json!({ "name": 1, "tags": [] }),
            json!({ "name": "x", "tags": ["c"] }),
            json!({ "name": "x", "tags": [], "count": 1.5 }),
            json!({ "name": "x", "tags": [], "more": 1 }),
        ] {
            assert!(!fits(&bad, &schema), "{bad}");
        }
    }
}
