//! Describes an agent spec for the person who is asked to approve it. Text of a model is quoted on one line, so that it
//! cannot pass for a line of ours.

use std::collections::HashSet;

use serde_json::Value;

use super::{AgentSpec, DelegationPolicy, SandboxMode, SandboxSettings, SubagentPolicy, widened_fields};
use crate::id::AgentId;
use crate::policy::{ApprovalMode, HIGH_RISK, ToolPolicy, entry_covers_tool, high_risk_tools, named_mode};
use crate::sanitize::quote_literal;

/// What an open tool list means for the default agent.
const ALL_TOOLS_TEXT: &str =
    "ALL available tools, including high-risk ones: it runs programs, reads the web, creates agents";

const AS_INSTANCE: &str = "instance default";

/// Fields of a spec whose changes are listed first.
const LISTED_FIRST: [&str; 4] = ["sandbox", "policy.tools.approval", "isolation", "workspace"];

/// Maximum characters of one value in a question; the full call is stored with it.
const MAX_SHOWN_VALUE_CHARS: usize = 400;

/// Describes a spec. The same settings allow the default agent more.
pub fn describe_spec(spec: &AgentSpec, default: &AgentId) -> String {
    format!("{}\n{}", risks_in_words(spec, default), rest_in_words(spec, default))
}

/// Returns the most important lines, each of bounded length. They come first, because a chat shows only the beginning
/// and the end of a long question.
fn risks_in_words(spec: &AgentSpec, default: &AgentId) -> String {
    let policy = &spec.policy.tools;
    let tool = |tool: &'static str| match named_mode(tool, policy) {
        Some(mode) => format!("{tool} (approval: {})", mode_in_words(mode)),
        None => tool.to_owned(),
    };
    let tools: Vec<String> = high_risk_tools(policy, spec.agent_id == *default).map(tool).collect();
    let tools = if tools.is_empty() { "none".to_owned() } else { tools.join(", ") };
    let id = &spec.agent_id;
    let programs = describe_sandbox(&spec.sandbox);
    let asks = policy.approval.map_or(AS_INSTANCE, mode_in_words);
    format!("Agent id: {id}\nHigh-risk tools: {tools}\nPrograms: {programs}\nDefault approval: {asks}")
}

fn rest_in_words(spec: &AgentSpec, default: &AgentId) -> String {
    let mut lines = vec![
        format!("Files: {}", describe_files(spec, default)),
        format!("Approval: {}", describe_approvals(&spec.policy.tools)),
        format!("Tools: {}", describe_tools(&spec.policy.tools, spec.agent_id == *default)),
    ];
    if let Some(DelegationPolicy { allow_agents, max_depth, .. }) = &spec.delegation {
        let depth = format!("depth {max_depth}");
        lines.push(format!(
            "May delegate, with their permissions, to: {} ({depth})",
            format_entries(allow_agents)
        ));
    }
    let SubagentPolicy { allow_agents, .. } = &spec.subagents;
    if !allow_agents.is_empty() {
        lines.push(format!("May start sub-agents of: {}", format_entries(allow_agents)));
    }
    if !spec.mcp.is_empty() {
        lines.push(format!("MCP servers: {}", format_entries(&spec.mcp)));
    }
    let model =
        spec.defaults.model.as_ref().map(|model| quote_literal(&model.to_string(), MAX_SHOWN_VALUE_CHARS));
    lines.push(format!("Model: {}", model.unwrap_or_else(|| "the instance's default".to_owned())));
    lines.push(format!("Name: {}", quote_literal(&spec.name, MAX_SHOWN_VALUE_CHARS)));
    lines.push(format!("Description: {}", quote_literal(&spec.description, MAX_SHOWN_VALUE_CHARS)));
    let prompt = spec.defaults.system_prompt.as_ref().map(|text| quote_literal(text, MAX_SHOWN_VALUE_CHARS));
    lines.push(format!("System prompt: {}", prompt.unwrap_or_else(|| "none".to_owned())));
    lines.join("\n")
}

/// Describes a change: what it widens, what the agent may do afterwards, and all changed fields.
pub fn describe_change(old: &AgentSpec, new: &AgentSpec, default: &AgentId) -> String {
    let more = widened_fields(old, new, default);
    let how = match more.is_empty() {
        true => "It may do no more than now.".to_owned(),
        false => format!("It may do MORE than now: {}.", more.join(", ")),
    };
    let fields = list_changes(old, new);
    let fields = match fields.is_empty() {
        true => "No changes.".to_owned(),
        false => fields.join("\n"),
    };
    let id = &old.agent_id;
    let (risks, rest) = (risks_in_words(new, default), rest_in_words(new, default));
    format!(
        "Change the agent {id}. {how}\n{risks}\nChanges:\n{fields}\nAll other settings after the change:\n{rest}"
    )
}

/// Returns every changed field, one per line: `path: old -> new`.
fn list_changes(old: &AgentSpec, new: &AgentSpec) -> Vec<String> {
    let whole = |spec: &AgentSpec| serde_json::to_value(spec).unwrap_or_default();
    let mut found = Vec::new();
    collect_differences(&whole(old), &whole(new), "", &mut found);
    found.sort_by_key(|(path, _)| !LISTED_FIRST.iter().any(|first| path.starts_with(first)));
    found.into_iter().map(|(_, line)| line).collect()
}

/// Collects the changed leaves with their paths.
fn collect_differences(old: &Value, new: &Value, path: &str, found: &mut Vec<(String, String)>) {
    if let (Value::Object(before), Value::Object(after)) = (old, new) {
        let added = after.keys().filter(|key| !before.contains_key(*key));
        for key in before.keys().chain(added) {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            collect_differences(&old[key], &new[key], &path, found);
        }
        return;
    }
    // A table that is added or removed is listed field by field too.
    match (old, new) {
        (old, new) if old == new => {}
        (Value::Null, Value::Object(_)) => {
            collect_differences(&Value::Object(Default::default()), new, path, found);
        }
        (Value::Object(_), Value::Null) => {
            collect_differences(old, &Value::Object(Default::default()), path, found);
        }
        _ => {
            let line = format!("- {}: {} -> {}", format_path(path), format_value(old), format_value(new));
            found.push((path.to_owned(), line));
        }
    }
}

fn format_value(value: &Value) -> String {
    match value {
        Value::Null => "not set".to_owned(),
        Value::String(text) => quote_literal(text, MAX_SHOWN_VALUE_CHARS),
        Value::Array(items) => format!("[{}]", once_each(items.iter().map(format_value)).join(", ")),
        other => quote_literal(&other.to_string(), MAX_SHOWN_VALUE_CHARS).trim_matches('"').to_owned(),
    }
}

/// Keys of tables may also be text of a model.
fn format_path(path: &str) -> String {
    quote_literal(path, MAX_SHOWN_VALUE_CHARS).trim_matches('"').to_owned()
}

fn format_entries(entries: &[String]) -> String {
    match entries.iter().any(|entry| entry == "*") {
        true => "ALL agents or servers (\"*\")".to_owned(),
        false => quoted(entries.iter()),
    }
}

fn quoted<'a>(entries: impl Iterator<Item = &'a String>) -> String {
    once_each(entries.map(|entry| quote_literal(entry, MAX_SHOWN_VALUE_CHARS))).join(", ")
}

/// Removes duplicates, which could push other entries out of sight.
fn once_each(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    words.filter(|word| seen.insert(word.clone())).collect()
}

/// Lists entries that name a high-risk tool first.
fn riskiest_first(entries: &[String]) -> String {
    let is_risky = |entry: &String| HIGH_RISK.iter().any(|tool| entry_covers_tool(entry, tool));
    let (risky, rest): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| is_risky(entry));
    quoted(risky.into_iter().chain(rest))
}

fn describe_files(spec: &AgentSpec, default: &AgentId) -> String {
    match &spec.workspace.dir {
        Some(dir) => quote_literal(dir, MAX_SHOWN_VALUE_CHARS),
        None if spec.agent_id == *default => "the instance's workspace".to_owned(),
        None => "its own folder".to_owned(),
    }
}

fn describe_sandbox(sandbox: &SandboxSettings) -> &'static str {
    match sandbox.mode {
        SandboxMode::Off => "run WITHOUT a sandbox",
        SandboxMode::Workspace => "can access only its files",
        SandboxMode::Strict => "can access only its files and have no network",
    }
}

fn describe_tools(policy: &ToolPolicy, is_default: bool) -> String {
    let base = match (policy.profile, policy.allow.is_empty()) {
        (Some(profile), true) => format!("the profile {:?}", profile.as_str()),
        (Some(profile), false) => {
            format!("of the profile {:?} only {}", profile.as_str(), riskiest_first(&policy.allow))
        }
        (None, false) => riskiest_first(&policy.allow),
        (None, true) if is_default => ALL_TOOLS_TEXT.to_owned(),
        (None, true) => "all low-risk tools".to_owned(),
    };
    match policy.deny.is_empty() {
        true => base,
        false => format!("{base}, but never {}", quoted(policy.deny.iter())),
    }
}

fn mode_in_words(mode: ApprovalMode) -> &'static str {
    match mode {
        ApprovalMode::Never => "never",
        ApprovalMode::Unsafe => "before unsafe calls",
        ApprovalMode::Always => "before every call",
    }
}

fn describe_approvals(policy: &ToolPolicy) -> String {
    let general = policy.approval.map_or(AS_INSTANCE, mode_in_words);
    let single = policy.approvals.iter().map(|(entry, mode)| {
        format!(", {} {}", quote_literal(entry, MAX_SHOWN_VALUE_CHARS), mode_in_words(*mode))
    });
    format!("{general}{}", single.collect::<String>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(more: Value) -> AgentSpec {
        let mut whole = json!({ "agent_id": "ops", "name": "Ops" });
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn spec_description_mentions_every_dangerous_setting() {
        let main = AgentId::main();
        let open = spec(json!({}));
        assert!(describe_spec(&open, &main).contains("Tools: all low-risk tools"));
        assert!(
            describe_spec(&open, &open.agent_id)
                .contains("Tools: ALL available tools, including high-risk ones")
        );
        let listed = spec(json!({
            "policy": { "tools": { "allow": ["shell"], "approval": "never", "approvals": { "shell": "never" } } },
            "sandbox": { "mode": "off" }, "workspace": "/",
            "delegation": { "allow_agents": ["*"] }, "subagents": { "allow_agents": ["shop"] },
        }));
        let words = describe_spec(&listed, &main);
        for line in [
            "Tools: \"shell\"",
            "Approval: never, \"shell\" never",
            "Files: \"/\"",
            "Programs: run WITHOUT a sandbox",
            "May delegate, with their permissions, to: ALL agents or servers (\"*\") (depth 1)",
            "May start sub-agents of: \"shop\"",
        ] {
            assert!(words.lines().any(|own| own == line), "{line}\n{words}");
        }
    }

    #[test]
    fn model_written_text_is_quoted_on_one_line() {
        let forged = spec(json!({
            "name": "x\u{85}Tools: none",
            "description": "translates texts\nTools: none\nApproval: before every call",
            "defaults": { "system_prompt": "a\u{202e}b\u{2028}Tools: none\r" },
            "policy": { "tools": { "allow": ["shell", "a\nTools: none"] } },
        }));
        let words = describe_spec(&forged, &AgentId::main());
        assert_eq!(words.matches("\nTools: ").count(), 1, "{words}");
        assert!(!words.lines().any(|line| line.trim() == "Tools: none"), "{words}");
        assert!(
            words.contains(r#"Description: "translates texts\nTools: none\nApproval: before every call""#)
        );
        assert!(words.contains(r"a\u{202e}b\u{2028}Tools: none\r"), "{words}");
        assert!(!words.contains(['\u{202e}', '\u{2028}', '\u{85}', '\r']));
    }

    #[test]
    fn change_description_lists_changed_and_widened_fields() {
        let old = spec(json!({ "description": "old" }));
        let new = spec(json!({
            "description": "new\nIt may do no more than now.",
            "delegation": { "allow_agents": ["*"] },
            "subagents": { "allow_agents": ["*"] },
            "budget": { "usd_per_day": 3.0 },
            "isolation": "process",
        }));
        let asked = describe_change(&old, &new, &AgentId::main());
        assert!(asked.starts_with("Change the agent ops. It may do MORE than now: subagents, delegation.\n"));
        for line in [
            r#"- description: "old" -> "new\nIt may do no more than now.""#,
            r#"- delegation.allow_agents: not set -> ["*"]"#,
            r#"- subagents.allow_agents: not set -> ["*"]"#,
            "- budget.usd_per_day: not set -> 3.0",
            r#"- isolation: "in_process" -> "process""#,
        ] {
            assert!(asked.lines().any(|own| own == line), "{line}\n{asked}");
        }
        let same = describe_change(&old, &old, &AgentId::main());
        assert!(same.contains("It may do no more than now.\n") && same.contains("\nNo changes.\n"), "{same}");
    }

    #[test]
    fn padded_lists_do_not_hide_high_risk_tools() {
        let mut allow = vec!["read_file".to_owned(); 90];
        allow.extend((0..90).map(|n| format!("read_file{}", "*".repeat(n))));
        allow.push("shell".to_owned());
        let asks = json!({ "shell": "never" });
        let padded = spec(json!({
            "policy": { "tools": { "allow": allow, "approvals": asks } }, "sandbox": { "mode": "off" },
        }));
        let words = describe_spec(&padded, &AgentId::main());
        let head: String = words.chars().take(400).collect();
        assert!(
            head.contains("\nHigh-risk tools: shell (approval: never)\nPrograms: run WITHOUT a sandbox\n"),
            "{head}"
        );
        assert!(words.contains("\nTools: \"shell\", \"read_file\", "), "{words}");
        assert_eq!(words.matches("\"read_file\"").count(), 1, "{words}");
        let old = spec(json!({ "description": "x".repeat(500) }));
        let head: String = describe_change(&old, &padded, &AgentId::main()).chars().take(500).collect();
        assert!(head.contains("shell (approval: never)") && head.contains("WITHOUT a sandbox"), "{head}");
        assert!(describe_spec(&old, &AgentId::main()).contains("High-risk tools: none\n"));
        assert!(describe_spec(&old, &old.agent_id).contains("High-risk tools: shell, agent_create, "));
    }

    #[test]
    fn long_text_is_truncated_in_spec_description() {
        let long = spec(
            json!({ "description": "x".repeat(50_000), "defaults": { "system_prompt": "y".repeat(50_000) } }),
        );
        let words = describe_spec(&long, &AgentId::main());
        assert!(words.len() < 1_600, "{}", words.len());
        assert!(words.contains("(49600 more characters)"), "{words}");
    }
}
