//! Changing a thing by a JSON merge patch (RFC 7396): named fields are set, null removes one.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The thing after the patch, or what is wrong with it. The field that names it stays as it is.
pub fn patched<T: Serialize + DeserializeOwned>(thing: &T, name: &str, patch: Value) -> Result<T, String> {
    if !patch.is_object() {
        return Err("expected an object".to_owned());
    }
    let mut whole = serde_json::to_value(thing).map_err(|error| error.to_string())?;
    let named = whole[name].clone();
    merge(&mut whole, patch);
    match whole.get(name) == Some(&named) {
        true => serde_json::from_value(whole).map_err(|error| error.to_string()),
        false => Err(format!("{name} can not be changed")),
    }
}

fn merge(target: &mut Value, patch: Value) {
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
            merge(fields.entry(name).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agent::AgentSpec;

    #[test]
    fn a_merge_patch_sets_nests_and_removes() {
        let mut spec = json!({ "a": 1, "b": { "c": 2, "d": 3 } });
        merge(&mut spec, json!({ "a": null, "b": { "c": 4 }, "e": [1] }));
        assert_eq!(spec, json!({ "b": { "c": 4, "d": 3 }, "e": [1] }));
    }

    #[test]
    fn a_patch_makes_a_spec_or_says_why_not() {
        let spec = AgentSpec::named(crate::id::AgentId::main());
        let changed =
            patched(&spec, "agent_id", json!({ "policy": { "tools": { "deny": ["shell"] } } })).unwrap();
        assert_eq!(changed.policy.tools.deny, ["shell"]);
        assert!(patched(&spec, "agent_id", json!({ "agent_id": "other" })).unwrap_err().contains("agent_id"));
        assert!(patched(&spec, "agent_id", json!({ "nonsense": 1 })).unwrap_err().contains("nonsense"));
        assert!(patched(&spec, "agent_id", json!([])).is_err());
    }
}
