//! Checks single config values against their schema.

use std::net::IpAddr;

use serde_json::Value;

use super::ConfigFault;
use super::key_names;
use crate::id::AgentId;
use crate::provider::ModelRef;

/// Values of other gateways: the type, the value, and what to write instead.
const FOREIGN_VALUES: [(&str, &str, &str); 2] = [
    ("SandboxMode", "all", "use \"workspace\": the programs of every session are sandboxed"),
    ("SandboxMode", "non-main", "use \"workspace\", or \"off\" for the one agent that needs it"),
];

/// Returns the JSON types that a schema accepts. An enumeration is text.
pub(super) fn schema_types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
        _ if schema["oneOf"].is_array() => vec!["string"],
        _ => Vec::new(),
    }
}

pub(super) fn is_numeric(types: &[&str]) -> bool {
    types.contains(&"integer") || types.contains(&"number")
}

pub(super) fn types_phrase(types: &[&str]) -> &'static str {
    match types.iter().find(|kind| **kind != "null") {
        Some(&"object") => "a table",
        Some(&"array") => "a list",
        Some(&"string") => "text",
        Some(&"boolean") => "true or false",
        Some(&"integer") => "a whole number",
        _ => "a number",
    }
}

pub(super) fn check_integer(value: i64, schema: &Value) -> Result<Value, ConfigFault> {
    #[allow(clippy::cast_precision_loss)]
    check_range(value as f64, schema)?;
    Ok(value.into())
}

pub(super) fn check_float(value: f64, types: &[&str], schema: &Value) -> Result<Value, ConfigFault> {
    check_range(value, schema)?;
    if types.contains(&"number") {
        Ok(value.into())
    } else {
        Err(ConfigFault::new("expected a whole number", ""))
    }
}

fn check_range(value: f64, schema: &Value) -> Result<(), ConfigFault> {
    let limit = |key: &str| schema[key].as_f64().map(|limit| (limit, &schema[key]));
    // Types without a maximum in the schema are still bounded by their Rust type.
    let widest = match schema["format"].as_str() {
        Some("uint32") => f64::from(u32::MAX),
        Some("uint64") => 9_007_199_254_740_992.0,
        _ => f64::MAX,
    };
    if let Some((_, shown)) = limit("minimum").filter(|(least, _)| value < *least) {
        return Err(ConfigFault::new(format!("must be at least {shown}"), ""));
    }
    if let Some((_, shown)) = limit("maximum").filter(|(most, _)| value > *most) {
        return Err(ConfigFault::new(format!("must be at most {shown}"), ""));
    }
    if value.is_nan() || value.abs() > widest {
        return Err(ConfigFault::new("this number is too large", ""));
    }
    Ok(())
}

pub(super) fn check_text(text: &str, def: Option<&str>, schema: &Value) -> Result<(), ConfigFault> {
    let words = enum_values(schema);
    if !words.is_empty() && !words.contains(&text) {
        if let Some((_, _, hint)) =
            FOREIGN_VALUES.iter().find(|(of, word, _)| Some(*of) == def && *word == text)
        {
            return Err(ConfigFault::new(format!("{text:?} is not a valid value"), *hint));
        }
        return Err(ConfigFault::new(
            format!("{text:?} is not a valid value"),
            key_names::suggest_word(text, &words),
        ));
    }
    match (def, schema["format"].as_str()) {
        (Some("AgentId"), _) => {
            AgentId::parse(text).map(drop).map_err(|error| ConfigFault::new(error.to_string(), ""))
        }
        (Some("ModelRef" | "ModelChoice"), _) => {
            ModelRef::parse(text).map(drop).map_err(|error| ConfigFault::new(error.to_string(), ""))
        }
        (_, Some("ip")) if text.parse::<IpAddr>().is_err() => Err(ConfigFault::new(
            format!("{text:?} is not an IP address"),
            r#"use "127.0.0.1" for this machine only, "0.0.0.0" for every network"#,
        )),
        (_, Some("uri")) => check_web_address(text),
        _ => Ok(()),
    }
}

/// Returns the values of an enumeration, with descriptions (`oneOf`) or without (`enum`).
fn enum_values(schema: &Value) -> Vec<&str> {
    let plain = schema["enum"].as_array().into_iter().flatten();
    let described = schema["oneOf"].as_array().into_iter().flatten().flat_map(|one| {
        let several = one["enum"].as_array().into_iter().flatten();
        one.get("const").into_iter().chain(several)
    });
    plain.chain(described).filter_map(Value::as_str).collect()
}

fn check_web_address(text: &str) -> Result<(), ConfigFault> {
    let rest = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    match host {
        Some(host) if !host.is_empty() && !text.contains(char::is_whitespace) => Ok(()),
        // The text is not quoted, because a URL may contain a password.
        _ => Err(ConfigFault::new(
            "this is not an http or https URL",
            "use the full URL, like https://example.com/v1",
        )),
    }
}
