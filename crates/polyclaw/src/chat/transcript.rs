//! Converts the stored session into transcript entries.

use std::collections::HashMap;

use polyclaw_api::transcript::SessionMessageView;
use polyclaw_domain::message::{MessageOrigin, MessagePart, MessageRole, tool_calls};
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
pub fn from_transcript(
    messages: &[SessionMessageView],
    faces: &HashMap<String, String>,
) -> Vec<TranscriptRow> {
    let mut rows = Vec::new();
    for message in messages {
        let turn = message.turn_id.as_str();
        let entries = match message.role {
            MessageRole::User => vec![user_entry(message)],
            MessageRole::Assistant => assistant_entries(message, turn),
            MessageRole::Tool => apply_tool_result(message, &mut rows, faces),
        };
        rows.extend(entries.into_iter().map(|entry| TranscriptRow { turn: turn.to_owned(), entry }));
    }
    rows
}

fn user_entry(message: &SessionMessageView) -> TranscriptEntry {
    let (id, text) = (message.id.to_string(), message.text.clone());
    if let Some(origin) = internal_author(&message.origin) {
        return TranscriptEntry::InternalMessage { id, origin, text };
    }
    TranscriptEntry::User(UserMessage {
        text,
        key: String::new(),
        id: Some(id),
        turn: Some(message.turn_id.to_string()),
        state: UserMessageState::Accepted,
    })
}

/// Returns the author of a message that no person wrote.
pub fn internal_author(origin: &MessageOrigin) -> Option<String> {
    (*origin != MessageOrigin::User).then(|| origin.to_string())
}

fn assistant_entries(message: &SessionMessageView, turn: &str) -> Vec<TranscriptEntry> {
    let meta = message.meta.as_ref().unwrap_or(&Value::Null);
    let reply = meta["said"].as_str().unwrap_or_default().to_owned();
    let answer = |text| TranscriptEntry::Answer { turn: turn.to_owned(), step: None, text, open: false };
    let mut entries: Vec<TranscriptEntry> = [reply, message.text.clone()]
        .into_iter()
        .filter(|text| !text.trim().is_empty())
        .map(answer)
        .collect();
    if meta["finish_reason"] == "length" {
        entries.push(TranscriptEntry::Note { text: TRUNCATED_NOTE.to_owned(), tone: NoteTone::Plain });
    }
    for call in tool_calls(&message.parts) {
        entries.push(TranscriptEntry::Tool(ToolCard {
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments: arguments_line(&call.arguments),
            output: String::new(),
            sandbox: None,
            state: ToolState::Running,
        }));
    }
    entries
}

/// Completes the card of the call. Returns the text of another agent if the call delegated to one.
fn apply_tool_result(
    message: &SessionMessageView,
    rows: &mut [TranscriptRow],
    faces: &HashMap<String, String>,
) -> Vec<TranscriptEntry> {
    let mut entries = Vec::new();
    for part in &message.parts {
        let MessagePart::ToolResult { call_id, name, is_error } = part else { continue };
        let found = rows.iter_mut().rev().find_map(|row| match &mut row.entry {
            TranscriptEntry::Tool(tool) if tool.call_id == *call_id => Some(tool),
            _ => None,
        });
        if let Some(tool) = found {
            tool.state = if *is_error { ToolState::Failed } else { ToolState::Ok };
            message.text.clone_into(&mut tool.output);
            tool.sandbox = message.meta.as_ref().and_then(|meta| describe_sandbox(&meta["sandbox"]));
        }
        if name == "delegate_to_agent" {
            entries.extend(delegate_entry(message.turn_id.as_str(), &message.text, faces));
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
