//! Converts a server's tools to tool specs. Text from the server is cleaned and bounded; its hints about side effects
//! count only if the operator trusts it.

use std::sync::Arc;

use polyclaw_domain::config::McpApproval;
use polyclaw_domain::mcp::mcp_tool_names;
use polyclaw_domain::sanitize;
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolRisk, ToolSpec};
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::settings::McpSettings;

/// Maximum tools per server. More would crowd out the other tools.
const MAX_TOOLS: usize = 128;
const MAX_DESCRIPTION_LEN: usize = 1_024;
/// Limits for a text inside a schema and for a schema as a whole.
const MAX_SCHEMA_TEXT_LEN: usize = 512;
const MAX_SCHEMA_BYTES: usize = 16 * 1024;
const MAX_SCHEMA_DEPTH: usize = 24;

pub struct McpToolSpec {
    pub spec: Arc<ToolSpec>,
    /// The tool's name on the server.
    pub tool: String,
}

/// Converts the tool list of a server.
pub fn tool_specs(server: &str, settings: &McpSettings, mut tools: Vec<Tool>) -> Vec<McpToolSpec> {
    tools.retain(|tool| settings.allows_tool(&tool.name));
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools.dedup_by(|a, b| a.name == b.name);
    if tools.len() > MAX_TOOLS {
        tracing::warn!(
            mcp.server = server,
            tools = tools.len(),
            "MCP server has too many tools; offering only the first {MAX_TOOLS}, choose others with tools.allow"
        );
        tools.truncate(MAX_TOOLS);
    }
    let names = mcp_tool_names(server, tools.iter().map(|tool| tool.name.as_ref()));
    tools.into_iter().zip(names).map(|(tool, name)| tool_spec(server, settings, tool, name)).collect()
}

fn tool_spec(server: &str, settings: &McpSettings, tool: Tool, name: String) -> McpToolSpec {
    let hints = tool.annotations.unwrap_or_default();
    // Tools of an untrusted server count as having side effects on every call.
    let effect = if settings.trusted { tool_effect(&hints) } else { ToolEffect::Effect };
    let about =
        sanitize::limit_block(tool.description.as_deref().unwrap_or_default().trim(), MAX_DESCRIPTION_LEN);
    let ask = match settings.approval {
        McpApproval::Always => true,
        McpApproval::Unsafe => effect != ToolEffect::Pure,
        McpApproval::Never => false,
    };
    let spec = ToolSpec {
        name,
        description: format!("(MCP server {server}) {about}"),
        parameters: parameter_schema(&tool.input_schema),
        effect,
        risk: if effect == ToolEffect::Pure { ToolRisk::Low } else { ToolRisk::High },
        consent: if ask { ToolConsent::AskPerson } else { ToolConsent::NotNeeded },
        // It runs elsewhere, with other rights.
        confined: false,
    };
    McpToolSpec { spec: Arc::new(spec), tool: tool.name.into_owned() }
}

/// Without hints a tool counts as having side effects on every call.
fn tool_effect(hints: &ToolAnnotations) -> ToolEffect {
    match (hints.read_only_hint, hints.idempotent_hint) {
        (Some(true), _) => ToolEffect::Pure,
        (_, Some(true)) => ToolEffect::Idempotent,
        _ => ToolEffect::Effect,
    }
}

/// Returns the argument schema in a form that providers accept. One that is too large or malformed becomes a plain
/// object.
fn parameter_schema(given: &Map<String, Value>) -> Value {
    let mut own = given.clone();
    own.remove("$schema");
    own.insert("type".to_owned(), "object".into());
    let cleaned = clean_schema(&Value::Object(own), MAX_SCHEMA_DEPTH);
    let fits = |schema: &Value| schema.to_string().len() <= MAX_SCHEMA_BYTES;
    cleaned.filter(fits).unwrap_or_else(|| json!({ "type": "object" }))
}

fn clean_schema(value: &Value, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    Some(match value {
        Value::String(text) => sanitize::limit_block(text, MAX_SCHEMA_TEXT_LEN).into(),
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| clean_schema(item, depth)).collect::<Option<_>>()?)
        }
        Value::Object(fields) => {
            // Names are sent back as they are, so they can only be rejected, not cleaned.
            let is_plain = |name: &str| !name.chars().any(|c| c.is_control() || sanitize::is_hidden(c));
            let field = |(name, value): (&String, &Value)| {
                is_plain(name).then_some(())?;
                Some((name.clone(), clean_schema(value, depth)?))
            };
            Value::Object(fields.iter().map(field).collect::<Option<_>>()?)
        }
        other => other.clone(),
    })
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::config::McpServer;

    use super::*;
    use crate::mcp::settings::McpHost;

    fn settings(change: impl FnOnce(&mut McpServer)) -> McpSettings {
        let mut server = McpServer { command: Some("x".to_owned()), ..McpServer::default() };
        change(&mut server);
        McpSettings::from_config("lab", &server, &McpHost::default()).unwrap()
    }

    fn tool(value: Value) -> Tool {
        serde_json::from_value(value).unwrap()
    }

    fn one(settings: &McpSettings, value: Value) -> Arc<ToolSpec> {
        Arc::clone(&tool_specs("lab", settings, vec![tool(value)])[0].spec)
    }

    #[test]
    fn tool_hints_apply_only_to_trusted_servers() {
        let read = json!({ "name": "t", "inputSchema": {}, "annotations": { "readOnlyHint": true } });
        let put = json!({ "name": "t", "inputSchema": {}, "annotations": { "idempotentHint": true } });
        let bare = json!({ "name": "t", "inputSchema": {} });
        let careful = settings(|_| {});
        let facts = |spec: &ToolSpec| (spec.effect, spec.risk, spec.consent);
        for tool in [&read, &put, &bare] {
            assert_eq!(
                facts(&one(&careful, tool.clone())),
                (ToolEffect::Effect, ToolRisk::High, ToolConsent::AskPerson)
            );
        }
        let trusted = settings(|server| server.trusted = true);
        assert_eq!(
            facts(&one(&trusted, read.clone())),
            (ToolEffect::Pure, ToolRisk::Low, ToolConsent::NotNeeded)
        );
        assert_eq!(
            facts(&one(&trusted, put)),
            (ToolEffect::Idempotent, ToolRisk::High, ToolConsent::AskPerson)
        );
        assert_eq!(
            facts(&one(&trusted, bare.clone())),
            (ToolEffect::Effect, ToolRisk::High, ToolConsent::AskPerson)
        );
        let always = settings(|server| server.approval = McpApproval::Always);
        assert_eq!(one(&always, read).consent, ToolConsent::AskPerson);
        let never = settings(|server| server.approval = McpApproval::Never);
        assert_eq!(one(&never, bare).consent, ToolConsent::NotNeeded);
    }

    #[test]
    fn mcp_tool_texts_are_sanitized_and_limited() {
        let spec = one(
            &settings(|_| {}),
            json!({
                "name": "n".repeat(10_000),
                "description": format!("\u{202e}evil\u{1b}[2J\n{}", "x".repeat(100_000)),
                "inputSchema": { "$schema": "x", "properties": { "a": { "description": "\u{200b}hidden".repeat(1_000) } } },
            }),
        );
        assert_eq!(spec.name.len(), 64);
        assert!(
            spec.description.starts_with("(MCP server lab) evil[2J\nxxx")
                && spec.description.chars().count() < 1_100
        );
        assert_eq!(spec.parameters["type"], "object");
        assert!(spec.parameters.get("$schema").is_none());
        let text = spec.parameters["properties"]["a"]["description"].as_str().unwrap();
        assert!(text.starts_with("hiddenhidden") && text.chars().count() == 513);
    }

    #[test]
    fn unusable_schema_is_replaced_by_plain_object() {
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({ "properties": { "a": deep } });
        }
        let wide: Map<String, Value> = (0..5_000).map(|n| (format!("field{n}"), json!({}))).collect();
        let forged = json!({ "properties": { "a\u{202e}b": {} } });
        for schema in [deep, json!({ "properties": wide }), forged] {
            let spec = one(&settings(|_| {}), json!({ "name": "t", "inputSchema": schema }));
            assert_eq!(spec.parameters, json!({ "type": "object" }));
        }
    }

    #[test]
    fn mcp_tool_count_is_limited() {
        let tools = (0..1_000).map(|n| tool(json!({ "name": format!("t{n}"), "inputSchema": {} }))).collect();
        assert_eq!(tool_specs("lab", &settings(|_| {}), tools).len(), MAX_TOOLS);
    }
}
