//! What is listed can be called, what is not can not.

use polyclaw_domain::agent::SandboxMode;
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolRisk, Toolbox};
use serde_json::json;

use crate::Bench;

#[test]
fn tools_declare_effect_risk_and_consent() {
    let bench = Bench::new();
    let listed = bench.tools.list_tools(&bench.scope);
    let declared: Vec<_> =
        listed.iter().map(|spec| (spec.name.as_str(), spec.effect, spec.risk, spec.consent)).collect();
    let expected = [
        ("read_file", ToolEffect::Pure, ToolRisk::Low, ToolConsent::NotNeeded),
        ("write_file", ToolEffect::Idempotent, ToolRisk::Low, ToolConsent::NotNeeded),
        ("edit_file", ToolEffect::Effect, ToolRisk::Low, ToolConsent::NotNeeded),
        ("apply_patch", ToolEffect::Effect, ToolRisk::Low, ToolConsent::NotNeeded),
        ("list_dir", ToolEffect::Pure, ToolRisk::Low, ToolConsent::NotNeeded),
        ("search_files", ToolEffect::Pure, ToolRisk::Low, ToolConsent::NotNeeded),
        ("image_view", ToolEffect::Pure, ToolRisk::Low, ToolConsent::NotNeeded),
        ("shell", ToolEffect::Effect, ToolRisk::High, ToolConsent::NotNeeded),
        ("http_fetch", ToolEffect::Pure, ToolRisk::High, ToolConsent::NotNeeded),
    ];
    assert_eq!(declared, expected);
    let is_known = |name: &str| polyclaw_domain::policy::HIGH_RISK.contains(&name);
    assert!(listed.iter().all(|spec| is_known(&spec.name) == (spec.risk == ToolRisk::High)));
}

#[test]
fn unconfined_shell_command_needs_approval() {
    let mut bench = Bench::new();
    for (mode, consent, confined) in [
        (SandboxMode::Off, ToolConsent::AskPerson, false),
        (SandboxMode::Workspace, ToolConsent::NotNeeded, true),
        (SandboxMode::Strict, ToolConsent::NotNeeded, true),
    ] {
        bench.scope.sandbox.mode = mode;
        let listed = bench.tools.list_tools(&bench.scope);
        let shell = listed.iter().find(|spec| spec.name == "shell").unwrap();
        assert_eq!((shell.consent, shell.confined), (consent, confined), "{mode:?}");
    }
}

#[tokio::test]
async fn unknown_tool_call_is_an_error() {
    let bench = Bench::new();
    let unknown = [("no_such_tool", json!({})), ("", json!({})), (&"x".repeat(100_000), json!({}))];
    for (name, arguments) in unknown {
        let error = bench.refused(name, arguments).await;
        assert!(error.contains("no tool") && error.len() < 500, "{error}");
    }
}

#[tokio::test]
async fn every_listed_tool_reports_invalid_arguments() {
    let bench = Bench::new();
    for spec in bench.tools.list_tools(&bench.scope) {
        for arguments in [json!({ "no_such_field": 1 }), json!([1]), json!("text"), json!(7)] {
            let error = bench.refused(&spec.name, arguments).await;
            assert!(error.contains("invalid arguments"), "{}: {error}", spec.name);
        }
    }
    let error = bench.refused("read_file", json!({ "path": "a", "offset_line": -1 })).await;
    assert!(error.contains("-1"), "{error}");
    let error = bench.refused("write_file", json!({ "path": "a" })).await;
    assert!(error.contains("content"), "{error}");
    let error = bench.refused("read_file", json!({ "path": ["x".repeat(100_000)] })).await;
    assert!(error.len() < 1000);
}

#[test]
fn schemas_are_plain_objects_that_forbid_unknown_fields() {
    let bench = Bench::new();
    for spec in bench.tools.list_tools(&bench.scope) {
        let schema = &spec.parameters;
        assert_eq!(schema["type"], "object", "{}", spec.name);
        assert_eq!(schema["additionalProperties"], false, "{}", spec.name);
        for (name, field) in schema["properties"].as_object().unwrap() {
            assert!(field["description"].is_string(), "{}.{name}", spec.name);
            assert!(field["type"].is_string(), "{}.{name}: {field}", spec.name);
        }
        let text = schema.to_string();
        for word in ["$ref", "$schema", "null", "anyOf", "format"] {
            assert!(!text.contains(&format!("\"{word}\"")), "{} holds {word}: {text}", spec.name);
        }
    }
}

#[test]
fn http_fetch_schema_matches_snapshot() {
    let bench = Bench::new();
    let listed = bench.tools.list_tools(&bench.scope);
    let spec = listed.iter().find(|spec| spec.name == "http_fetch").unwrap();
    insta::assert_json_snapshot!(spec.parameters, @r#"
    {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "url": {
          "type": "string",
          "description": "The http or https URL."
        },
        "method": {
          "type": "string",
          "enum": [
            "GET",
            "HEAD"
          ],
          "description": "The HTTP method. Default: GET."
        },
        "headers": {
          "type": "object",
          "additionalProperties": {
            "type": "string"
          },
          "description": "Request headers. Dropped when the page redirects to another site."
        },
        "max_bytes": {
          "type": "integer",
          "description": "Maximum bytes of the body to return, up to 1048576. Default: 262144.",
          "minimum": 0
        }
      },
      "required": [
        "url"
      ]
    }
    "#);
}
