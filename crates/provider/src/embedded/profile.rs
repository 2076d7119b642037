//! Builds prompts for a very small model: a short system prompt, few tools, examples, an answer constrained by a
//! schema, and limited history.
//!
//! With tools, every answer is one line of JSON: a tool call, or `reply` with the text for the person. After a tool
//! result only `reply` is allowed, so that such a small model cannot loop.

use std::sync::Arc;

use polyclaw_domain::provider::{Prompt, PromptMessage};
use polyclaw_domain::tool::{ToolEffect, ToolRisk, ToolSpec};
use serde_json::{Value, json};

use super::constraint::{self, to_spaced_json};
use super::generate::{GenerationRequest, TemplateMessage};

/// Maximum tokens per answer, whatever the caller asks for.
const MAX_ANSWER_TOKENS: usize = 200;
/// Maximum tokens per prompt. A longer one takes longer than people wait.
pub(super) const MAX_PROMPT_TOKENS: usize = 2048;
const MAX_TOOLS: usize = 4;
/// Maximum characters of a message, a tool result and the agent's own system prompt.
const MAX_MESSAGE_CHARS: usize = 2000;
const MAX_TOOL_RESULT_CHARS: usize = 800;
const MAX_SYSTEM_CHARS: usize = 400;
const MAX_DESCRIPTION_CHARS: usize = 60;
const MAX_REPLY_CHARS: usize = 700;
const MAX_PARAMETER_NAMES_CHARS: usize = 120;
const MAX_EXAMPLE_CHARS: usize = 200;

/// Start of a reply; the text follows.
pub(super) const REPLY_JSON_PREFIX: &str = "{\"tool\": \"reply\", \"text\": \"";

/// Builds the model input for a prompt. `count` returns the token count of a text.
pub(super) fn build_generation_request(prompt: &Prompt, count: &dyn Fn(&str) -> usize) -> GenerationRequest {
    let tools = select_tools(&prompt.tools);
    let mut lines = system_and_examples(prompt, &tools);
    let history = prompt.messages.iter().map(|message| message_line(message, !tools.is_empty())).collect();
    let used = count_tokens(&lines, count);
    lines.extend(newest_lines(history, MAX_PROMPT_TOKENS.saturating_sub(used), count));
    let seed =
        lines.iter().flat_map(|line| line.text.bytes()).fold(0xcbf2_9ce4_8422_2325, |seed: u64, byte| {
            (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let asked = prompt.max_tokens.map_or(MAX_ANSWER_TOKENS, |most| most as usize);
    GenerationRequest {
        lines,
        schema: (!tools.is_empty()).then(|| answer_schema(&tools, prompt.messages.last())),
        temperature: prompt.temperature.unwrap_or(0.0) as f32,
        seed,
        most: asked.min(MAX_ANSWER_TOKENS),
    }
}

/// Returns the common start of all conversations with this system prompt and these tools.
pub(super) fn opening_lines(prompt: &Prompt) -> Vec<TemplateMessage> {
    system_and_examples(prompt, &select_tools(&prompt.tools))
}

fn system_and_examples(prompt: &Prompt, tools: &[&ToolSpec]) -> Vec<TemplateMessage> {
    let mut lines = vec![TemplateMessage { role: "system", text: system_text(prompt, tools) }];
    lines.extend(example_lines(tools));
    lines
}

/// Selects the first four tools, read-only ones first: a model that often picks the wrong tool should find the harmless
/// ones.
fn select_tools(tools: &[Arc<ToolSpec>]) -> Vec<&ToolSpec> {
    // A tool whose schema is not supported is omitted; the others still work.
    let can_be_held = |tool: &&ToolSpec| constraint::compile_schema(&tool.parameters, &|_| true).is_ok();
    let mut tools: Vec<&ToolSpec> = tools.iter().map(Arc::as_ref).filter(can_be_held).collect();
    tools.sort_by_key(|tool| (tool.effect != ToolEffect::Pure, tool.risk != ToolRisk::Low));
    tools.truncate(MAX_TOOLS);
    tools
}

fn system_text(prompt: &Prompt, tools: &[&ToolSpec]) -> String {
    // Keeps the agent's own text, which comes first. The framing rules after it are too much for such a small model.
    let own = prompt.system.split("\n\n").next().unwrap_or_default().trim();
    let own = if own.is_empty() { "You are a helpful assistant." } else { own };
    let own = truncate_text(own, MAX_SYSTEM_CHARS);
    if tools.is_empty() {
        return own;
    }
    let list: Vec<String> = tools.iter().map(|tool| format!("- {}", tool_signature(tool))).collect();
    format!(
        "{own}\nAnswer with one line of JSON. Use \"reply\" to talk, or one of these tools:\n{}",
        list.join("\n")
    )
}

fn tool_signature(tool: &ToolSpec) -> String {
    let members = tool.parameters["properties"].as_object();
    let names =
        members.map(|members| members.keys().cloned().collect::<Vec<_>>().join(", ")).unwrap_or_default();
    let about = tool.description.split(['.', '\n']).next().unwrap_or_default().trim();
    let name = truncate_text(&tool.name, MAX_DESCRIPTION_CHARS);
    format!(
        "{name}({}): {}",
        truncate_text(&names, MAX_PARAMETER_NAMES_CHARS),
        truncate_text(about, MAX_DESCRIPTION_CHARS)
    )
}

/// Examples: a greeting with its reply, and a call of each of the first two tools. Without them the model picks tools
/// at random.
fn example_lines(tools: &[&ToolSpec]) -> Vec<TemplateMessage> {
    if tools.is_empty() {
        return Vec::new();
    }
    let user = |text: String| TemplateMessage { role: "user", text };
    let assistant = |value: &Value| TemplateMessage { role: "assistant", text: to_spaced_json(value) };
    let mut lines = vec![user("Hello!".to_owned()), assistant(&reply_json("Hello! How can I help you?"))];
    for tool in tools.iter().take(2) {
        let arguments = sample_arguments(&tool.parameters);
        if to_spaced_json(&arguments).len() > MAX_EXAMPLE_CHARS {
            continue;
        }
        lines.push(user(format!("Use {} {}", tool.name, arguments_in_words(&arguments)).trim().to_owned()));
        lines.push(assistant(&json!({ "tool": tool.name, "arguments": arguments })));
    }
    lines.extend([user("What is your name?".to_owned()), assistant(&reply_json("I am a small demo model."))]);
    lines
}

fn reply_json(text: &str) -> Value {
    json!({ "tool": "reply", "text": text })
}

/// Builds sample arguments with only the required properties.
fn sample_arguments(parameters: &Value) -> Value {
    let required = parameters["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let members = required.map(|name| (name.to_owned(), sample_value(name, &parameters["properties"][name])));
    Value::Object(members.collect())
}

fn sample_value(name: &str, schema: &Value) -> Value {
    if let Some(choice) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return choice.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(2),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ if name.contains("path") || name.contains("file") => json!("notes.txt"),
        _ if name.contains("url") => json!("https://example.org"),
        _ => json!(name),
    }
}

fn arguments_in_words(arguments: &Value) -> String {
    let members = arguments.as_object().into_iter().flatten();
    let members = members.map(|(name, value)| match value.as_str() {
        Some(text) => format!("{name} {text}"),
        None => format!("{name} {value}"),
    });
    members.collect::<Vec<_>>().join(" and ")
}

fn answer_schema(tools: &[&ToolSpec], last: Option<&PromptMessage>) -> Value {
    let object = |members: Value| {
        let required: Vec<String> =
            members.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        json!({ "type": "object", "properties": members, "required": required })
    };
    let text = json!({ "type": "string", "minLength": 1, "maxLength": MAX_REPLY_CHARS });
    let reply = object(json!({ "tool": { "const": "reply" }, "text": text }));
    let mut choices = vec![reply];
    if !matches!(last, Some(PromptMessage::ToolResult { .. })) {
        for tool in tools {
            let mut arguments = tool.parameters.clone();
            let here = format!("/anyOf/{}/properties/arguments", choices.len());
            move_references(&mut arguments, &here);
            choices.push(object(json!({ "tool": { "const": tool.name }, "arguments": arguments })));
        }
    }
    json!({ "anyOf": choices })
}

/// Rewrites references from the root of a tool's schema to its new position.
fn move_references(schema: &mut Value, to: &str) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(target)) = members.get_mut("$ref")
                && let Some(path) = target.strip_prefix('#')
            {
                *target = format!("#{to}{path}");
            }
            members.values_mut().for_each(|member| move_references(member, to));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_references(item, to)),
        _ => {}
    }
}

fn message_line(message: &PromptMessage, in_json: bool) -> TemplateMessage {
    match message {
        PromptMessage::User { text, .. } => {
            TemplateMessage { role: "user", text: truncate_text(text, MAX_MESSAGE_CHARS) }
        }
        PromptMessage::Assistant { text, calls } => {
            let text = truncate_text(text, MAX_MESSAGE_CHARS);
            let text = match calls.first() {
                Some(call) => to_spaced_json(&json!({ "tool": call.name, "arguments": call.arguments })),
                None if in_json => to_spaced_json(&reply_json(&text)),
                None => text,
            };
            TemplateMessage { role: "assistant", text }
        }
        PromptMessage::ToolResult { name, content, is_error, .. } => {
            let what = if *is_error { "failed" } else { "said" };
            TemplateMessage {
                role: "user",
                text: format!("The tool {name} {what}: {}", truncate_text(content, MAX_TOOL_RESULT_CHARS)),
            }
        }
    }
}

/// Returns as many of the newest lines as fit. The last line is always included, truncated if necessary.
fn newest_lines(
    mut lines: Vec<TemplateMessage>,
    room: usize,
    count: &dyn Fn(&str) -> usize,
) -> Vec<TemplateMessage> {
    while let Some(last) = lines.last_mut()
        && count_tokens(std::slice::from_ref(last), count) > room
        && last.text.chars().count() > 1
    {
        last.text = truncate_text(&last.text, last.text.chars().count() / 2);
    }
    let mut left = room;
    let mut first = lines.len().saturating_sub(1);
    for (at, line) in lines.iter().enumerate().rev() {
        match left.checked_sub(count_tokens(std::slice::from_ref(line), count)) {
            Some(less) => (left, first) = (less, at),
            None => break,
        }
    }
    lines.into_iter().skip(first).collect()
}

/// Counts the tokens, including the markers around each line.
fn count_tokens(lines: &[TemplateMessage], count: &dyn Fn(&str) -> usize) -> usize {
    lines.iter().map(|line| count(&line.text) + 5).sum()
}

/// Truncates a text to `most` characters.
fn truncate_text(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::tool::{ToolCall, ToolConsent};

    use super::*;

    pub fn tool(name: &str, effect: ToolEffect, parameters: Value) -> Arc<ToolSpec> {
        let description = format!("Does {name}. At length.");
        let (risk, consent) = (ToolRisk::Low, ToolConsent::NotNeeded);
        Arc::new(ToolSpec {
            name: name.to_owned(),
            description,
            parameters,
            effect,
            risk,
            consent,
            confined: false,
        })
    }

    fn prompt(messages: Vec<PromptMessage>, tools: usize) -> Prompt {
        let path =
            json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
        let effect = |at| if at == 0 { ToolEffect::Effect } else { ToolEffect::Pure };
        let tools = (0..tools).map(|at| tool(&format!("tool{at}"), effect(at), path.clone())).collect();
        Prompt { messages, tools, system: "You are Ada.\n\nFrames: nonce".to_owned(), ..Prompt::default() }
    }

    fn chars(text: &str) -> usize {
        text.len() / 4
    }

    #[test]
    fn prompt_without_tools_is_plain_text() {
        let ask = build_generation_request(&prompt(vec![PromptMessage::user_text("hi")], 0), &chars);
        let texts: Vec<_> = ask.lines.iter().map(|line| (line.role, line.text.as_str())).collect();
        assert_eq!(texts, [("system", "You are Ada."), ("user", "hi")]);
        assert!(ask.schema.is_none() && ask.most == 200);
    }

    #[test]
    fn four_pure_tools_are_shown_with_valid_examples() {
        let ask = build_generation_request(&prompt(vec![PromptMessage::user_text("hi")], 6), &chars);
        let system = &ask.lines[0].text;
        assert!(
            system.contains("tool1(path): Does tool1")
                && !system.contains("tool0")
                && !system.contains("tool5")
        );
        let start = constraint::compile_schema(&ask.schema.unwrap(), &|_| true).unwrap();
        for line in ask.lines.iter().filter(|line| line.role == "assistant") {
            let mut constraint = start.clone();
            assert!(
                line.text.bytes().all(|byte| constraint.advance_byte(byte)) && constraint.is_over(),
                "{}",
                line.text
            );
        }
        let shown: usize = ask.lines.iter().map(|line| line.text.len()).sum();
        assert!(shown < 1200, "{shown} characters, some 300 tokens");
    }

    #[test]
    fn tool_result_is_followed_by_text_reply_only() {
        let call =
            ToolCall { id: "1".to_owned(), name: "tool1".to_owned(), arguments: json!({ "path": "a" }) };
        let messages = vec![
            PromptMessage::user_text("read a"),
            PromptMessage::Assistant { text: String::new(), calls: vec![call] },
            PromptMessage::ToolResult {
                call_id: "1".to_owned(),
                name: "tool1".to_owned(),
                content: "x".repeat(5000),
                is_error: false,
            },
        ];
        let ask = build_generation_request(&prompt(messages, 2), &chars);
        assert_eq!(
            constraint::compile_schema(&ask.schema.unwrap(), &|_| true).unwrap().forced_bytes(),
            REPLY_JSON_PREFIX.as_bytes()
        );
        assert!(ask.lines.last().unwrap().text.len() < 900);
        assert_eq!(
            ask.lines[ask.lines.len() - 2].text,
            "{\"tool\": \"tool1\", \"arguments\": {\"path\": \"a\"}}"
        );
    }

    #[test]
    fn long_history_drops_oldest_lines() {
        let text_of = |at| PromptMessage::user_text(format!("{at} {}", "word ".repeat(300)));
        let ask = build_generation_request(&prompt((0..20).map(text_of).collect(), 0), &chars);
        assert!(ask.lines.last().unwrap().text.starts_with("19 "));
        assert!((3..10).contains(&ask.lines.len()), "{} lines", ask.lines.len());
        assert!(count_tokens(&ask.lines, &chars) <= MAX_PROMPT_TOKENS);
    }
}
