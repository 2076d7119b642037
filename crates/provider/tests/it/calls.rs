//! Four tools, forty questions to a model that has them, and whether a call keeps all its tool's schema says.

use std::sync::Arc;

use polyclaw_domain::json_schema;
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolRisk, ToolSpec};
use serde_json::{Value, json};

pub const QUESTIONS: [&str; 40] = [
    "Add 17 and 25.",
    "What is 3 plus 4?",
    "Please sum 100 and 250.",
    "How is the weather in Madrid?",
    "Weather in Oslo in fahrenheit",
    "Read the file notes.txt",
    "Show me lines 1 and 5 of main.rs",
    "Remind me in 10 minutes to call Anna.",
    "Hello!",
    "Who are you?",
    "Tell me a joke.",
    "Add -5 and 1000000",
    "Wie ist das Wetter in Köln?",
    "天気はどう？",
    "🦀🦀🦀",
    "Write \"quotes\" and \\ backslashes.",
    "{\"tool\": \"add\"}",
    "<|im_end|>",
    "Open /etc/passwd",
    "List everything you can do.",
    "Add two and two, loudly.",
    "What is the capital of France?",
    "Remind me tomorrow",
    "Is it raining in London, Paris, Rome and Berlin?",
    "1+1",
    "a",
    "?",
    "Please, please, please, please help me.",
    "Read a/b/c/d/e.txt then add 1 and 2",
    "Translate 'good morning' to German.",
    "Set a loud reminder in 2.5 minutes: tea",
    "Repeat the word word.",
    "What can you do with 12 and 30?",
    "Count to one hundred.",
    "Add 1.5 and 2",
    "Read the file called 'my notes (final).md'",
    "Weather?",
    "Thanks!",
    "Do nothing.",
    "Say the same thing again and again forever.",
];

fn tool(name: &str, description: &str, properties: Value, required: &[&str]) -> Arc<ToolSpec> {
    let parameters = json!({ "type": "object", "properties": properties, "required": required,
        "additionalProperties": false });
    let (name, description) = (name.to_owned(), description.to_owned());
    let (effect, risk, consent) = (ToolEffect::Pure, ToolRisk::Low, ToolConsent::NotNeeded);
    Arc::new(ToolSpec { name, description, parameters, effect, risk, consent, confined: false })
}

pub fn four_tools() -> Vec<Arc<ToolSpec>> {
    let number = || json!({ "type": "integer" });
    let unit = json!({ "type": "string", "enum": ["celsius", "fahrenheit"] });
    vec![
        tool("add", "Adds two numbers.", json!({ "a": number(), "b": number() }), &["a", "b"]),
        tool(
            "weather",
            "Tells the weather of a city.",
            json!({ "city": { "type": "string", "maxLength": 40 }, "unit": unit }),
            &["city"],
        ),
        tool(
            "read_file",
            "Reads a file.",
            json!({ "path": { "type": "string", "minLength": 1 }, "lines": { "type": "array", "items": { "type": "integer", "minimum": 1 }, "maxItems": 2 } }),
            &["path"],
        ),
        tool(
            "remind",
            "Reminds of something later.",
            json!({ "text": { "type": "string", "minLength": 3 }, "minutes": { "type": "number", "minimum": 0 }, "loud": { "type": "boolean" }, "times": { "type": "integer", "minimum": 1, "maximum": 12 } }),
            &["text", "minutes"],
        ),
    ]
}

/// Types, members, choices and bounds, at every depth. Where a schema names no length, a text has at most 300 characters
/// and a list 6 items.
pub fn fits(value: &Value, schema: &Value) -> bool {
    json_schema::matches_schema(value, schema) && is_within(value, schema)
}

fn is_within(value: &Value, schema: &Value) -> bool {
    let size = |least: &str, most: &str, usual: u64| {
        schema[least].as_u64().unwrap_or(0)..=schema[most].as_u64().unwrap_or(usual)
    };
    match value {
        Value::String(text) => size("minLength", "maxLength", 300).contains(&(text.chars().count() as u64)),
        Value::Number(number) => {
            let (number, bound) = (number.as_f64().unwrap(), |key: &str| schema[key].as_f64());
            bound("minimum").is_none_or(|least| number >= least)
                && bound("maximum").is_none_or(|most| number <= most)
        }
        Value::Array(items) => {
            size("minItems", "maxItems", 6).contains(&(items.len() as u64))
                && items.iter().all(|item| is_within(item, &schema["items"]))
        }
        Value::Object(members) => {
            members.iter().all(|(name, member)| is_within(member, &schema["properties"][name]))
        }
        _ => true,
    }
}
