//! Generated and documented files match the code.

use std::path::PathBuf;

use polyclaw_domain::config::{self, Config};

use super::{json, toml};

fn docs(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Returns the code blocks of one language in a page.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    let starts = page.split(&opening).skip(1);
    starts.filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect()
}

#[test]
fn documented_schema_matches_loader() {
    let path = docs("config.schema.json");
    let generated = format!("{}\n", serde_json::to_string_pretty(&config::config_schema()).unwrap());
    if std::env::var("POLYCLAW_UPDATE").as_deref() == Ok("1") {
        std::fs::write(&path, &generated).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        checked_in == generated,
        "docs/config.schema.json is out of date; refresh it with: POLYCLAW_UPDATE=1 cargo test -p polyclaw-domain --test config"
    );
}

#[test]
fn every_config_setting_has_description() {
    let schema = config::config_schema();
    let described = |value: &serde_json::Value| value["description"].is_string();
    for (name, def) in schema["$defs"].as_object().unwrap() {
        let Some(settings) = def["properties"].as_object() else { continue };
        assert!(described(def), "{name} needs a doc comment");
        for (key, setting) in settings {
            // The two lists of a tool policy are described together, at the policy.
            let elsewhere = setting["$ref"].is_string() || name == "ToolPolicy";
            assert!(described(setting) || elsewhere, "{name}.{key} needs a doc comment");
        }
    }
}

#[test]
fn first_run_config_equals_defaults() {
    assert_eq!(toml(config::first_run_text()).unwrap(), Config::default());
}

#[test]
fn first_run_config_parses_with_examples_enabled() {
    let switched_on = |line: &str| match line.strip_prefix('#') {
        Some(code) if !code.starts_with(' ') => code.to_owned(),
        _ => line.to_owned(),
    };
    let text: Vec<String> = config::first_run_text().lines().map(switched_on).collect();
    let config = toml(&text.join("\n")).unwrap();
    assert_eq!((config.gateway.port, config.agents.list.len(), config.channels.webhook.len()), (18801, 1, 1));
}

#[test]
fn configuration_guide_examples_round_trip() {
    let page = std::fs::read_to_string(docs("guide/configuration.md")).unwrap();
    let examples = blocks(&page, "toml");
    assert!(examples.len() >= 5, "the guide shows its sections by example");
    for example in examples {
        let config = toml(&example).unwrap_or_else(|errors| panic!("{errors}\n---\n{example}"));
        let written = toml::to_string(&config).unwrap();
        // Secrets are written masked, so they are restored before the comparison.
        let text = written.replace("\nurl = \"***\"", "\nurl = \"env:DATABASE_URL\"");
        let text = text.replace("\"***\"", "\"env:OPENAI_API_KEY\"");
        assert_eq!(toml::to_string(&toml(&text).unwrap()).unwrap(), written);
    }
}

#[test]
fn guide_json_example_equals_toml_example() {
    let page = std::fs::read_to_string(docs("guide/configuration.md")).unwrap();
    let (before, after) = page.split_once("```json5\n").unwrap();
    let twin = blocks(before, "toml").pop().unwrap();
    assert_eq!(json(after.split("```").next().unwrap()).unwrap(), toml(&twin).unwrap());
}
