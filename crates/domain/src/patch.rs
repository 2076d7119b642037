//! JSON merge patches (RFC 7396): given fields are set, null removes a field.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Applies a patch and returns the result, or an error. The field `name` must not change.
pub fn apply_patch<T: Serialize + DeserializeOwned>(
    thing: &T,
    name: &str,
    patch: Value,
) -> Result<T, String> {
    if !patch.is_object() {
        return Err("expected an object".to_owned());
    }
    let mut patch = patch;
    unfold_model(&mut patch);
    let mut whole = serde_json::to_value(thing).map_err(|error| error.to_string())?;
    let named = whole[name].clone();
    merge_value(&mut whole, patch);
    match whole.get(name) == Some(&named) {
        true => serde_json::from_value(whole).map_err(|error| error.to_string()),
        false => Err(format!("{name} cannot be changed")),
    }
}

/// Moves model settings out of the model's table to the fields in which they are stored. Otherwise they would conflict
/// with values of an earlier patch.
fn unfold_model(patch: &mut Value) {
    let Some(defaults) = patch.get_mut("defaults").and_then(Value::as_object_mut) else { return };
    for field in ["temperature", "fallbacks"] {
        if defaults.contains_key(field) {
            continue;
        }
        let table = defaults.get_mut("model").and_then(Value::as_object_mut);
        if let Some(inside) = table.and_then(|table| table.remove(field)) {
            defaults.insert(field.to_owned(), inside);
        }
    }
}

/// Returns the merge patch that turns `from` into `to`: empty if they are equal.
pub fn create_patch<T: Serialize>(from: &T, to: &T) -> Result<Value, String> {
    let whole = |thing: &T| serde_json::to_value(thing).map_err(|error| error.to_string());
    Ok(Value::Object(diff_objects(&whole(from)?, &whole(to)?)))
}

fn diff_objects(from: &Value, to: &Value) -> Map<String, Value> {
    let empty = Map::new();
    let (from, to) = (from.as_object().unwrap_or(&empty), to.as_object().unwrap_or(&empty));
    let removed = from.keys().filter(|name| !to.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let changed = to.iter().filter(|(name, value)| from.get(*name) != Some(value)).map(|(name, value)| {
        let inner = match from.get(name) {
            Some(old) if old.is_object() && value.is_object() => Value::Object(diff_objects(old, value)),
            _ => value.clone(),
        };
        (name.clone(), inner)
    });
    removed.chain(changed).collect()
}

fn merge_value(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(fields) = target.as_object_mut() else { return };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(&name);
        } else {
            merge_value(fields.entry(name).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agent::AgentSpec;

    #[test]
    fn merge_patch_sets_nests_and_removes_keys() {
        let mut spec = json!({ "a": 1, "b": { "c": 2, "d": 3 } });
        merge_value(&mut spec, json!({ "a": null, "b": { "c": 4 }, "e": [1] }));
        assert_eq!(spec, json!({ "b": { "c": 4, "d": 3 }, "e": [1] }));
    }

    #[test]
    fn model_table_can_be_patched_repeatedly() {
        let mut spec = AgentSpec::with_id(crate::id::AgentId::main());
        for warmth in [0.5, 0.6] {
            let table = json!({ "provider": "p", "model": "m", "temperature": warmth, "fallbacks": ["p/n"] });
            spec = apply_patch(&spec, "agent_id", json!({ "defaults": { "model": table } })).unwrap();
            assert_eq!(spec.defaults.temperature, Some(warmth));
        }
        let both =
            json!({ "model": { "provider": "p", "model": "m", "temperature": 0.1 }, "temperature": 0.2 });
        assert!(
            apply_patch(&spec, "agent_id", json!({ "defaults": both })).unwrap_err().contains("given twice")
        );
    }

    #[test]
    fn created_patch_turns_source_into_target() {
        let (from, to) = (
            json!({ "a": 1, "b": { "c": 2, "d": 3 }, "x": [1] }),
            json!({ "b": { "c": 4, "e": 5 }, "x": [] }),
        );
        let patch = create_patch(&from, &to).unwrap();
        assert_eq!(patch, json!({ "a": null, "b": { "c": 4, "d": null, "e": 5 }, "x": [] }));
        let mut made = from.clone();
        merge_value(&mut made, patch);
        assert_eq!(made, to);
        assert_eq!(create_patch(&from, &from).unwrap(), json!({}));
    }

    #[test]
    fn patch_yields_valid_spec_or_error() {
        let spec = AgentSpec::with_id(crate::id::AgentId::main());
        let changed =
            apply_patch(&spec, "agent_id", json!({ "policy": { "tools": { "deny": ["shell"] } } })).unwrap();
        assert_eq!(changed.policy.tools.deny, ["shell"]);
        assert!(
            apply_patch(&spec, "agent_id", json!({ "agent_id": "other" })).unwrap_err().contains("agent_id")
        );
        assert!(apply_patch(&spec, "agent_id", json!({ "nonsense": 1 })).unwrap_err().contains("nonsense"));
        assert!(apply_patch(&spec, "agent_id", json!([])).is_err());
    }
}
