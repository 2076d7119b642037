//! Formats the task history of a team and the messages between its members.

use serde_json::Value;

use crate::output::{CliOutput, cell_text, visible_line};

pub(super) fn event_log_text(output: &CliOutput, listed: &Value) -> String {
    let row = |one: &Value| {
        ["seq", "created_at", "task_id", "change", "by"].map(|key| cell_text(&one[key])).to_vec()
    };
    let rows: Vec<_> = listed.as_array().into_iter().flatten().map(row).collect();
    match rows.is_empty() {
        true => "Nothing has happened.".to_owned(),
        false => output.format_table(&["SEQ", "WHEN", "TASK", "CHANGE", "BY"], &rows),
    }
}

/// Returns the text of a team message. Shutdown requests and responses may carry only a reason.
fn body(message: &Value) -> String {
    let text = |key: &str| message[key].as_str().map(str::trim).filter(|text| !text.is_empty());
    let answer = match (message["type"].as_str(), message["approve"].as_bool()) {
        (Some("shutdown_response"), Some(true)) => Some("Agrees."),
        (Some("shutdown_response"), Some(false)) => Some("Does not agree."),
        _ => None,
    };
    let words: Vec<&str> = answer.into_iter().chain(text("content").or(text("reason"))).collect();
    if words.is_empty() { "(no text)".to_owned() } else { visible_line(&words.join(" ")) }
}

/// Formats messages in reading order, oldest first.
pub(super) fn messages_text(listed: &Value) -> String {
    let one = |message: &Value| {
        let body = body(message);
        format!(
            "{}  {} to {} ({}, {})\n{body}\n",
            cell_text(&message["created_at"]),
            cell_text(&message["from"]),
            cell_text(&message["to"]),
            cell_text(&message["type"]),
            cell_text(&message["state"]),
        )
    };
    let shown: Vec<String> = listed.as_array().into_iter().flatten().rev().map(one).collect();
    if shown.is_empty() { "Nobody has written.".to_owned() } else { shown.join("\n") }
}
