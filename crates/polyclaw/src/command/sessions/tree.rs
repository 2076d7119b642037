//! `polyclaw sessions tree`: conversations and what was begun from them, drawn.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::path;
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Output, cell};

/// Conversations among which those are looked for that began others.
const LOOKED_AT: usize = 1000;

pub async fn run(client: &Client, output: Output, key: Option<&str>) -> anyhow::Result<()> {
    let keys = match key {
        Some(key) => vec![key.to_owned()],
        None => roots(client).await?,
    };
    let mut trees = Vec::new();
    for key in &keys {
        trees.push(client.get(&path(key, "/tree")).await?);
    }
    Ok(output.say(&json!({ "trees": trees }), |_| match trees.is_empty() {
        true => "No conversation has begun another.".to_owned(),
        false => trees.iter().map(drawn).collect::<Vec<_>>().join("\n\n"),
    })?)
}

/// Conversations of people from which others were begun.
async fn roots(client: &Client) -> Result<Vec<String>, Failure> {
    let sessions = client.list("/sessions", "sessions", LOOKED_AT).await?;
    let text = |session: &Value, field: &str| session[field].as_str().map(str::to_owned);
    let owners: BTreeSet<String> =
        sessions.iter().filter_map(|session| text(session, "owner_session_key")).collect();
    let own = sessions.iter().filter(|session| session["owner_session_key"].is_null());
    Ok(own.filter_map(|session| text(session, "session_key")).filter(|key| owners.contains(key)).collect())
}

fn drawn(tree: &Value) -> String {
    let mut lines = vec![line(tree)];
    draw(tree, "", &mut lines);
    lines.join("\n")
}

fn draw(tree: &Value, before: &str, lines: &mut Vec<String>) {
    let children = tree["children"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (at, child) in children.iter().enumerate() {
        let is_last = at + 1 == children.len();
        lines.push(format!("{before}{}{}", if is_last { "└─ " } else { "├─ " }, line(child)));
        draw(child, &format!("{before}{}", if is_last { "   " } else { "│  " }), lines);
    }
}

fn line(session: &Value) -> String {
    let status = if session["run_status"].is_null() { &session["state"] } else { &session["run_status"] };
    let age = session["age_ms"].as_i64().unwrap_or_default() / 1000;
    let tokens = match session["tokens"].as_i64() {
        Some(tokens) => format!("{tokens} tokens"),
        None => "tokens unknown".to_owned(),
    };
    let label = session["label"].as_str().map(|_| format!(" “{}”", cell(&session["label"])));
    format!(
        "{}{} {} · {} · lane {} · {age} s · {tokens} · trace {}",
        cell(&session["agent_id"]),
        label.unwrap_or_default(),
        cell(&session["session_key"]),
        cell(status),
        cell(&session["lane"]),
        cell(&session["trace_id"]),
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
        assert_eq!(drawn(&tree), expected);
    }
}
