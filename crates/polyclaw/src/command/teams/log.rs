//! Formats the task history of a team and the messages between its members.

use polyclaw_api::teams::{TaskLogEntryView, TeamMessageView};

use crate::output::{CliOutput, cell, visible_line};

pub(super) fn event_log_text(output: &CliOutput, listed: &[TaskLogEntryView]) -> String {
    let row = |one: &TaskLogEntryView| {
        vec![cell(&one.seq), cell(&one.created_at), cell(&one.task_id), cell(&one.change), cell(&one.by)]
    };
    let rows: Vec<_> = listed.iter().map(row).collect();
    if rows.is_empty() {
        "The log is empty.".to_owned()
    } else {
        output.format_table(&["SEQ", "TIME", "TASK", "CHANGE", "ACTOR"], &rows)
    }
}

/// Returns the text of a team message. Shutdown requests and responses may carry only a reason.
fn body(message: &TeamMessageView) -> String {
    let answer = match (message.r#type.as_str(), message.approve) {
        ("shutdown_response", Some(true)) => Some("Agreed."),
        ("shutdown_response", Some(false)) => Some("Refused."),
        _ => None,
    };
    let texts = [Some(message.content.as_str()), message.reason.as_deref()];
    let text = texts.into_iter().flatten().map(str::trim).find(|text| !text.is_empty());
    let words: Vec<&str> = answer.into_iter().chain(text).collect();
    if words.is_empty() { "(no text)".to_owned() } else { visible_line(&words.join(" ")) }
}

/// Formats messages in reading order, oldest first.
pub(super) fn messages_text(listed: &[TeamMessageView]) -> String {
    let one = |message: &TeamMessageView| {
        let body = body(message);
        format!(
            "{}  {} to {} ({}, {})\n{body}\n",
            message.created_at,
            visible_line(&message.from),
            visible_line(&message.to),
            visible_line(&message.r#type),
            visible_line(&message.state),
        )
    };
    let shown: Vec<String> = listed.iter().rev().map(one).collect();
    if shown.is_empty() { "No messages.".to_owned() } else { shown.join("\n") }
}
