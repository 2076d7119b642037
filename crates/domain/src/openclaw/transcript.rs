//! Translates transcripts: their lines and the session keys of their conversations.

use serde_json::Value;

use super::agent_names::AgentRenames;
use crate::message::MessageRole;
use crate::session_key::SessionKey;
use crate::time::Millis;

/// A transcript line that a person or an agent wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedLine {
    pub role: MessageRole,
    pub text: String,
    pub at: Option<Millis>,
}

/// Parses a message of a person or the agent. `None` for tool calls, their results and notes of OpenClaw, which could
/// not be repeated here.
pub fn parse_line(line: &Value) -> Option<ImportedLine> {
    let message = line.get("message").filter(|inner| inner.is_object()).unwrap_or(line);
    let role = match message["role"].as_str()? {
        "user" => MessageRole::User,
        "assistant" => MessageRole::Assistant,
        _ => return None,
    };
    let text = content_text(&message["content"]);
    let at = parse_moment(&message["timestamp"]).or_else(|| parse_moment(&line["timestamp"]));
    Some(ImportedLine { role, text, at }).filter(|reply| !reply.text.trim().is_empty())
}

fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter(|block| block["type"] == "text");
            texts.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn parse_moment(value: &Value) -> Option<Millis> {
    value.as_i64().map(Millis).or_else(|| Millis::parse(value.as_str()?))
}

/// Returns the session key of the same conversation here. `None` for sub-agents and cron jobs, whose runs ended there.
pub fn translate_session_key(text: &str, renamed: &AgentRenames) -> Option<SessionKey> {
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        ["agent", agent, rest @ ..]
            if !rest.is_empty() && !rest.contains(&"subagent") && !rest.contains(&"acp") =>
        {
            let agent = renamed.find_agent(agent)?;
            let parts: Vec<&str> =
                rest.iter().map(|part| if *part == "direct" { "dm" } else { *part }).collect();
            SessionKey::parse(SessionKey::from_parts(agent, &parts).as_str()).ok()
        }
        _ => None,
    }
}
