//! Converts the stored session into transcript entries.

use std::collections::HashMap;

use serde_json::Value;

use super::entry::{
    NoteTone, TRUNCATED_NOTE, ToolCard, ToolState, TranscriptEntry, UserMessage, UserMessageState,
    arguments_line, describe_sandbox,
};

/// An entry with its turn.
#[derive(Debug)]
pub struct TranscriptRow {
    pub turn: String,
    pub entry: TranscriptEntry,
}

/// Converts stored messages, oldest first. `faces` maps agent IDs to display names.
pub fn from_transcript(messages: &[Value], faces: &HashMap<String, String>) -> Vec<TranscriptRow> {
    let mut rows = Vec::new();
    for message in messages {
        let turn = message["turn_id"].as_str().unwrap_or_default();
        let text = message["text"].as_str().unwrap_or_default().to_owned();
        let entries = match message["role"].as_str() {
            Some("user") => vec![user_entry(message, text)],
            Some("assistant") => assistant_entries(message, turn, text),
            Some("tool") => apply_tool_result(message, &text, &mut rows, faces),
            _ => Vec::new(),
        };
        rows.extend(entries.into_iter().map(|entry| TranscriptRow { turn: turn.to_owned(), entry }));
    }
    rows
}

fn user_entry(message: &Value, text: String) -> TranscriptEntry {
    if let Some(origin) = internal_author(message) {
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        return TranscriptEntry::InternalMessage { id, origin, text };
    }
    TranscriptEntry::User(UserMessage {
        text,
        key: String::new(),
        id: message["id"].as_str().map(str::to_owned),
        turn: message["turn_id"].as_str().map(str::to_owned),
        state: UserMessageState::Accepted,
    })
}

/// Returns the author of a message that no person wrote.
pub fn internal_author(message: &Value) -> Option<String> {
    message["origin"].as_str().filter(|origin| *origin != "user").map(str::to_owned)
}

fn assistant_entries(message: &Value, turn: &str, text: String) -> Vec<TranscriptEntry> {
    let reply = message["meta"]["said"].as_str().unwrap_or_default().to_owned();
    let answer = |text| TranscriptEntry::Answer { turn: turn.to_owned(), step: None, text, open: false };
    let mut entries: Vec<TranscriptEntry> =
        [reply, text].into_iter().filter(|text| !text.trim().is_empty()).map(answer).collect();
    if message["meta"]["finish_reason"] == "length" {
        entries.push(TranscriptEntry::Note { text: TRUNCATED_NOTE.to_owned(), tone: NoteTone::Plain });
    }
    let parts = message["parts"].as_array().into_iter().flatten();
    for call in parts.filter(|part| part["type"] == "tool_call") {
        entries.push(TranscriptEntry::Tool(ToolCard {
            call_id: call["id"].as_str().unwrap_or_default().to_owned(),
            name: call["name"].as_str().unwrap_or_default().to_owned(),
            arguments: arguments_line(&call["arguments"]),
            output: String::new(),
            sandbox: None,
            state: ToolState::Running,
        }));
    }
    entries
}

/// Completes the card of the call. Returns the text of another agent if the call delegated to one.
fn apply_tool_result(
    message: &Value,
    text: &str,
    rows: &mut [TranscriptRow],
    faces: &HashMap<String, String>,
) -> Vec<TranscriptEntry> {
    let turn = message["turn_id"].as_str().unwrap_or_default();
    let mut entries = Vec::new();
    let parts = message["parts"].as_array().into_iter().flatten();
    for result in parts.filter(|part| part["type"] == "tool_result") {
        let found = rows.iter_mut().rev().find_map(|row| match &mut row.entry {
            TranscriptEntry::Tool(tool) if result["call_id"] == *tool.call_id => Some(tool),
            _ => None,
        });
        if let Some(tool) = found {
            tool.state = if result["is_error"] == true { ToolState::Failed } else { ToolState::Ok };
            text.clone_into(&mut tool.output);
            tool.sandbox = describe_sandbox(&message["meta"]["sandbox"]);
        }
        if result["name"] == "delegate_to_agent" {
            entries.extend(delegate_entry(turn, text, faces));
        }
    }
    entries
}

/// Returns another agent's text from the result of the delegating call.
fn delegate_entry(turn: &str, result: &str, faces: &HashMap<String, String>) -> Option<TranscriptEntry> {
    let body: Value = serde_json::from_str(result).ok().filter(|body: &Value| body["streamed"] == true)?;
    let text = match (body["response"].as_str(), body["partial_response"].as_str()) {
        (Some(whole), _) => whole.to_owned(),
        (None, Some(partial)) => format!("{partial}\n\n(Cut short.)"),
        (None, None) => return None,
    };
    let agent = body["agent_id"].as_str().unwrap_or_default();
    let name = faces.get(agent).map_or(agent, String::as_str).to_owned();
    let run = body["run_id"].as_str().unwrap_or_default().to_owned();
    Some(TranscriptEntry::DelegateText {
        turn: turn.to_owned(),
        run,
        name,
        text,
        open: false,
        is_stored: true,
    })
}
