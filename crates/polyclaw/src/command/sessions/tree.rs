//! `polyclaw sessions tree`: draws sessions and the sessions started from them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::session_path;
use crate::client::ApiClient;
use crate::failure::CommandFailure;
use crate::output::{CliOutput, cell_text};

/// Maximum number of sessions searched for ones that started others.
const MAX_SCANNED_SESSIONS: usize = 1000;

pub async fn run(client: &ApiClient, output: CliOutput, key: Option<&str>) -> anyhow::Result<()> {
    let keys = match key {
        Some(key) => vec![key.to_owned()],
        None => root_sessions(client).await?,
    };
    let mut trees = Vec::new();
    for key in &keys {
        trees.push(client.get(&session_path(key, "/tree")).await?);
    }
    Ok(output.print_value(&json!({ "trees": trees }), |_| {
        if trees.is_empty() {
            "No session has started another.".to_owned()
        } else {
            trees.iter().map(render_tree).collect::<Vec<_>>().join("\n\n")
        }
    })?)
}

/// Returns the sessions without an owner from which other sessions were started.
async fn root_sessions(client: &ApiClient) -> Result<Vec<String>, CommandFailure> {
    let sessions = client.list_items("/sessions", "sessions", MAX_SCANNED_SESSIONS).await?;
    let text = |session: &Value, field: &str| session[field].as_str().map(str::to_owned);
    let owners: BTreeSet<String> =
        sessions.iter().filter_map(|session| text(session, "owner_session_key")).collect();
    let own = sessions.iter().filter(|session| session["owner_session_key"].is_null());
    Ok(own.filter_map(|session| text(session, "session_key")).filter(|key| owners.contains(key)).collect())
}

fn render_tree(tree: &Value) -> String {
    let mut lines = vec![session_line(tree)];
    append_branch(tree, "", &mut lines);
    lines.join("\n")
}

fn append_branch(tree: &Value, before: &str, lines: &mut Vec<String>) {
    let children = tree["children"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (at, child) in children.iter().enumerate() {
        let is_last = at + 1 == children.len();
        lines.push(format!("{before}{}{}", if is_last { "└─ " } else { "├─ " }, session_line(child)));
        append_branch(child, &format!("{before}{}", if is_last { "   " } else { "│  " }), lines);
    }
}

fn session_line(session: &Value) -> String {
    let status = if session["run_status"].is_null() { &session["state"] } else { &session["run_status"] };
    let age = session["age_ms"].as_i64().unwrap_or_default() / 1000;
    let tokens = match session["tokens"].as_i64() {
        Some(tokens) => format!("{tokens} tokens"),
        None => "tokens unknown".to_owned(),
    };
    let label = session["label"].as_str().map(|_| format!(" “{}”", cell_text(&session["label"])));
    format!(
        "{}{} {} · {} · lane {} · {age} s · {tokens} · trace {}",
        cell_text(&session["agent_id"]),
        label.unwrap_or_default(),
        cell_text(&session["session_key"]),
        cell_text(status),
        cell_text(&session["lane"]),
        cell_text(&session["trace_id"]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_drawn_with_its_branches() {
        let node = |key: &str, children: Vec<Value>| {
            json!({ "session_key": key, "agent_id": "main", "label": key, "lane": "subagent", "state": "idle",
                "run_status": "ok", "trace_id": "t", "age_ms": 2_000, "tokens": 7, "children": children })
        };
        let mut tree = node("top", vec![node("a", vec![node("b", vec![])]), node("c", vec![])]);
        (tree["run_status"], tree["tokens"]) = (Value::Null, Value::Null);
        let rest = "· lane subagent · 2 s · 7 tokens · trace t";
        let expected = format!(
            "main “top” top · idle · lane subagent · 2 s · tokens unknown · trace t\n\
             ├─ main “a” a · ok {rest}\n\
             │  └─ main “b” b · ok {rest}\n\
             └─ main “c” c · ok {rest}"
        );
        assert_eq!(render_tree(&tree), expected);
    }
}
