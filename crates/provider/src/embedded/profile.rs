//! How a very small model is asked: a short system prompt, few tools, examples, an answer that is held to a schema, and
//! only as much history as it can follow.
//!
//! With tools every answer is one line of JSON: a call, or `reply` with the text for the person. After a tool's
//! result only `reply` is left to choose, so that a model of this size can not call in circles.

use std::sync::Arc;

use polyclaw_domain::provider::{Prompt, PromptMessage};
use polyclaw_domain::tool::{ToolEffect, ToolRisk, ToolSpec};
use serde_json::{Value, json};

use super::constraint::{self, spaced};
use super::generate::{Ask, Line};

/// Tokens of one answer, whatever the caller asks for.
const LONGEST_ANSWER: usize = 200;
/// Tokens of a whole prompt. A longer one takes longer than people wait.
pub(super) const LONGEST_PROMPT: usize = 2048;
const MOST_TOOLS: usize = 4;
/// Characters of one message, of a tool's result, and of what the agent's own prompt says.
const LONGEST_MESSAGE: usize = 2000;
const LONGEST_RESULT: usize = 800;
const LONGEST_SYSTEM: usize = 400;
const LONGEST_DESCRIPTION: usize = 60;
const LONGEST_REPLY: usize = 700;
const LONGEST_NAMES: usize = 120;
const LONGEST_EXAMPLE: usize = 200;

/// What a reply begins with; the text follows.
pub(super) const REPLY: &str = "{\"tool\": \"reply\", \"text\": \"";

/// What is sent to the model for a prompt. `count` says how many tokens a text takes.
pub(super) fn ask(prompt: &Prompt, count: &dyn Fn(&str) -> usize) -> Ask {
    let tools = chosen(&prompt.tools);
    let mut lines = beginning(prompt, &tools);
    let history = prompt.messages.iter().map(|message| line(message, !tools.is_empty())).collect();
    let used = size(&lines, count);
    lines.extend(newest(history, LONGEST_PROMPT.saturating_sub(used), count));
    let seed =
        lines.iter().flat_map(|line| line.text.bytes()).fold(0xcbf2_9ce4_8422_2325, |seed: u64, byte| {
            (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let asked = prompt.max_tokens.map_or(LONGEST_ANSWER, |most| most as usize);
    Ask {
        lines,
        schema: (!tools.is_empty()).then(|| schema(&tools, prompt.messages.last())),
        temperature: prompt.temperature.unwrap_or(0.0) as f32,
        seed,
        most: asked.min(LONGEST_ANSWER),
    }
}

/// What every conversation with this system prompt and these tools begins with.
pub(super) fn opening(prompt: &Prompt) -> Vec<Line> {
    beginning(prompt, &chosen(&prompt.tools))
}

fn beginning(prompt: &Prompt, tools: &[&ToolSpec]) -> Vec<Line> {
    let mut lines = vec![Line { role: "system", text: system(prompt, tools) }];
    lines.extend(examples(tools));
    lines
}

/// The first four tools, those that only read before those that change something: a model that often picks the
/// wrong one should find the harmless ones.
fn chosen(tools: &[Arc<ToolSpec>]) -> Vec<&ToolSpec> {
    // One that an answer can not be held to is left out: the others still work.
    let can_be_held = |tool: &&ToolSpec| constraint::graph(&tool.parameters, &|_| true).is_ok();
    let mut tools: Vec<&ToolSpec> = tools.iter().map(Arc::as_ref).filter(can_be_held).collect();
    tools.sort_by_key(|tool| (tool.effect != ToolEffect::Pure, tool.risk != ToolRisk::Low));
    tools.truncate(MOST_TOOLS);
    tools
}

fn system(prompt: &Prompt, tools: &[&ToolSpec]) -> String {
    // The agent's own words come first; the rules about frames after them are beyond a model of this size.
    let own = prompt.system.split("\n\n").next().unwrap_or_default().trim();
    let own = if own.is_empty() { "You are a helpful assistant." } else { own };
    let own = shorten(own, LONGEST_SYSTEM);
    if tools.is_empty() {
        return own;
    }
    let list: Vec<String> = tools.iter().map(|tool| format!("- {}", signature(tool))).collect();
    format!(
        "{own}\nAnswer with one line of JSON. Use \"reply\" to talk, or one of these tools:\n{}",
        list.join("\n")
    )
}

fn signature(tool: &ToolSpec) -> String {
    let members = tool.parameters["properties"].as_object();
    let names =
        members.map(|members| members.keys().cloned().collect::<Vec<_>>().join(", ")).unwrap_or_default();
    let about = tool.description.split(['.', '\n']).next().unwrap_or_default().trim();
    let name = shorten(&tool.name, LONGEST_DESCRIPTION);
    format!("{name}({}): {}", shorten(&names, LONGEST_NAMES), shorten(about, LONGEST_DESCRIPTION))
}

/// A greeting that is answered, and a call of each of the first two tools: without examples the model picks at random.
fn examples(tools: &[&ToolSpec]) -> Vec<Line> {
    if tools.is_empty() {
        return Vec::new();
    }
    let user = |text: String| Line { role: "user", text };
    let assistant = |value: &Value| Line { role: "assistant", text: spaced(value) };
    let mut lines = vec![user("Hello!".to_owned()), assistant(&reply("Hello! How can I help you?"))];
    for tool in tools.iter().take(2) {
        let arguments = sample(&tool.parameters);
        if spaced(&arguments).len() > LONGEST_EXAMPLE {
            continue;
        }
        lines.push(user(format!("Use {} {}", tool.name, words(&arguments)).trim().to_owned()));
        lines.push(assistant(&json!({ "tool": tool.name, "arguments": arguments })));
    }
    lines.extend([user("What is your name?".to_owned()), assistant(&reply("I am a small demo model."))]);
    lines
}

fn reply(text: &str) -> Value {
    json!({ "tool": "reply", "text": text })
}

/// Arguments a tool could be given: only what it requires.
fn sample(parameters: &Value) -> Value {
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

fn words(arguments: &Value) -> String {
    let members = arguments.as_object().into_iter().flatten();
    let members = members.map(|(name, value)| match value.as_str() {
        Some(text) => format!("{name} {text}"),
        None => format!("{name} {value}"),
    });
    members.collect::<Vec<_>>().join(" and ")
}

fn schema(tools: &[&ToolSpec], last: Option<&PromptMessage>) -> Value {
    let object = |members: Value| {
        let required: Vec<String> =
            members.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        json!({ "type": "object", "properties": members, "required": required })
    };
    let text = json!({ "type": "string", "minLength": 1, "maxLength": LONGEST_REPLY });
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

/// A tool's schema refers to its own parts from its own root, which is not the root any more.
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

fn line(message: &PromptMessage, in_json: bool) -> Line {
    match message {
        PromptMessage::User { text, .. } => Line { role: "user", text: shorten(text, LONGEST_MESSAGE) },
        PromptMessage::Assistant { text, calls } => {
            let text = shorten(text, LONGEST_MESSAGE);
            let text = match calls.first() {
                Some(call) => spaced(&json!({ "tool": call.name, "arguments": call.arguments })),
                None if in_json => spaced(&reply(&text)),
                None => text,
            };
            Line { role: "assistant", text }
        }
        PromptMessage::ToolResult { name, content, is_error, .. } => {
            let what = if *is_error { "failed" } else { "said" };
            Line {
                role: "user",
                text: format!("The tool {name} {what}: {}", shorten(content, LONGEST_RESULT)),
            }
        }
    }
}

/// As many of the newest lines as there is room for; the last one always, cut to the room there is.
fn newest(mut lines: Vec<Line>, room: usize, count: &dyn Fn(&str) -> usize) -> Vec<Line> {
    while let Some(last) = lines.last_mut()
        && size(std::slice::from_ref(last), count) > room
        && last.text.chars().count() > 1
    {
        last.text = shorten(&last.text, last.text.chars().count() / 2);
    }
    let mut left = room;
    let mut first = lines.len().saturating_sub(1);
    for (at, line) in lines.iter().enumerate().rev() {
        match left.checked_sub(size(std::slice::from_ref(line), count)) {
            Some(less) => (left, first) = (less, at),
            None => break,
        }
    }
    lines.into_iter().skip(first).collect()
}

/// With the marks around each line.
fn size(lines: &[Line], count: &dyn Fn(&str) -> usize) -> usize {
    lines.iter().map(|line| count(&line.text) + 5).sum()
}

/// The beginning of a text, cut where a character ends.
fn shorten(text: &str, most: usize) -> String {
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
    fn a_prompt_without_tools_is_plain_and_short() {
        let ask = ask(&prompt(vec![PromptMessage::user_text("hi")], 0), &chars);
        let texts: Vec<_> = ask.lines.iter().map(|line| (line.role, line.text.as_str())).collect();
        assert_eq!(texts, [("system", "You are Ada."), ("user", "hi")]);
        assert!(ask.schema.is_none() && ask.most == 200);
    }

    #[test]
    fn four_harmless_tools_are_shown_with_examples_that_fit_their_own_schema() {
        let ask = ask(&prompt(vec![PromptMessage::user_text("hi")], 6), &chars);
        let system = &ask.lines[0].text;
        assert!(
            system.contains("tool1(path): Does tool1")
                && !system.contains("tool0")
                && !system.contains("tool5")
        );
        let start = constraint::graph(&ask.schema.unwrap(), &|_| true).unwrap();
        for line in ask.lines.iter().filter(|line| line.role == "assistant") {
            let mut constraint = start.clone();
            assert!(
                line.text.bytes().all(|byte| constraint.step(byte)) && constraint.is_over(),
                "{}",
                line.text
            );
        }
        let shown: usize = ask.lines.iter().map(|line| line.text.len()).sum();
        assert!(shown < 1200, "{shown} characters, some 300 tokens");
    }

    #[test]
    fn after_a_tools_result_only_a_reply_is_left() {
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
        let ask = ask(&prompt(messages, 2), &chars);
        assert_eq!(constraint::graph(&ask.schema.unwrap(), &|_| true).unwrap().forced(), REPLY.as_bytes());
        assert!(ask.lines.last().unwrap().text.len() < 900);
        assert_eq!(
            ask.lines[ask.lines.len() - 2].text,
            "{\"tool\": \"tool1\", \"arguments\": {\"path\": \"a\"}}"
        );
    }

    #[test]
    fn a_long_history_loses_its_oldest_lines() {
        let said = |at| PromptMessage::user_text(format!("{at} {}", "word ".repeat(300)));
        let ask = ask(&prompt((0..20).map(said).collect(), 0), &chars);
        assert!(ask.lines.last().unwrap().text.starts_with("19 "));
        assert!((3..10).contains(&ask.lines.len()), "{} lines", ask.lines.len());
        assert!(size(&ask.lines, &chars) <= LONGEST_PROMPT);
    }
}
