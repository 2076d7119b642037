//! What happened in a team, and what its members wrote.

use serde_json::Value;

use crate::output::{Output, cell, safe};

pub(super) fn events(output: &Output, listed: &Value) -> String {
    let row =
        |one: &Value| ["seq", "created_at", "task_id", "change", "by"].map(|key| cell(&one[key])).to_vec();
    let rows: Vec<_> = listed.as_array().into_iter().flatten().map(row).collect();
    match rows.is_empty() {
        true => "Nothing has happened.".to_owned(),
        false => output.table(&["SEQ", "WHEN", "TASK", "CHANGE", "BY"], &rows),
    }
}

/// The oldest first, as one reads.
pub(super) fn mail(listed: &Value) -> String {
    let one = |letter: &Value| {
        let body = safe(letter["content"].as_str().unwrap_or_default());
        format!(
            "{}  {} to {} ({}, {})\n{body}\n",
            cell(&letter["created_at"]),
            cell(&letter["from"]),
            cell(&letter["to"]),
            cell(&letter["type"]),
            cell(&letter["state"]),
        )
    };
    let shown: Vec<String> = listed.as_array().into_iter().flatten().rev().map(one).collect();
    if shown.is_empty() { "Nobody has written.".to_owned() } else { shown.join("\n") }
}
