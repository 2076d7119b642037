//! Formats the task history of a team and the messages between its members.

use serde_json::Value;

use crate::output::{CliOutput, cell_text, visible_line};

pub(super) fn event_log_text(output: &CliOutput, listed: &Value) -> String {
    let row = |one: &Value| {
        ["seq", "created_at", "task_id", "change", "by"].map(|key| cell_text(&one[key])).to_vec()
    };
    let rows: Vec<_> = listed.as_array().into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        "The log is empty.".to_owned()
    } else {
        output.format_table(&["SEQ", "TIME", "TASK", "CHANGE", "ACTOR"], &rows)
    }
}

/// Returns the text of a team message. Shutdown requests and responses may carry only a reason.
fn body(message: &Value) -> String {
    let text = |key: &str| message[key].as_str().map(str::trim).filter(|text| !text.is_empty());
    let answer = match (message["type"].as_str(), message["approve"].as_bool()) {
        (Some("shutdown_response"), Some(true)) => Some("Agreed."),
        (Some("shutdown_response"), Some(false)) => Some("Refused."),
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
    if shown.is_empty() { "No messages.".to_owned() } else { shown.join("\n") }
}
