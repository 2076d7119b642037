//! `polyclaw sessions tree`: draws sessions and the sessions started from them.

use std::collections::BTreeSet;

use polyclaw_api::sessions::{SessionList, SessionView};
use polyclaw_api::tree::SessionNodeView;
use polyclaw_domain::session_key::SessionKey;
use serde_json::json;

use super::session_path;
use crate::client::ApiClient;
use crate::failure::CommandFailure;
use crate::output::{CliOutput, cell, visible_line};

/// Maximum number of sessions searched for ones that started others.
const MAX_SCANNED_SESSIONS: usize = 1000;

pub async fn run(client: &ApiClient, output: CliOutput, key: Option<&str>) -> anyhow::Result<()> {
    let keys = match key {
        Some(key) => vec![key.to_owned()],
        None => root_sessions(client).await?,
    };
    let mut trees = Vec::new();
    for key in &keys {
        let tree: SessionNodeView = client.get_as(&session_path(key, "/tree")).await?;
        trees.push(tree);
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
    let sessions: Vec<SessionView> =
        client.list_pages::<SessionList>("/sessions", MAX_SCANNED_SESSIONS).await?;
    let owners: BTreeSet<&SessionKey> =
        sessions.iter().filter_map(|session| session.owner_session_key.as_ref()).collect();
    let roots = sessions.iter().filter(|session| session.owner_session_key.is_none());
    let keys = roots.map(|session| &session.session_key).filter(|key| owners.contains(key));
    Ok(keys.map(ToString::to_string).collect())
}

fn render_tree(tree: &SessionNodeView) -> String {
    let mut lines = vec![session_line(tree)];
    append_branch(tree, "", &mut lines);
    lines.join("\n")
}

fn append_branch(tree: &SessionNodeView, before: &str, lines: &mut Vec<String>) {
    let children = &tree.children;
    for (at, child) in children.iter().enumerate() {
        let is_last = at + 1 == children.len();
        lines.push(format!("{before}{}{}", if is_last { "└─ " } else { "├─ " }, session_line(child)));
        append_branch(child, &format!("{before}{}", if is_last { "   " } else { "│  " }), lines);
    }
}

fn session_line(session: &SessionNodeView) -> String {
    let status = session.run_status.as_ref().map_or_else(|| cell(&session.state), cell);
    let age = session.age_ms / 1000;
    let tokens = match session.tokens {
        Some(tokens) => format!("{tokens} tokens"),
        None => "tokens unknown".to_owned(),
    };
    let label = session.label.as_ref().map(|label| format!(" “{}”", visible_line(label)));
    format!(
        "{}{} {} · {status} · lane {} · {age} s · {tokens} · trace {}",
        cell(&session.agent_id),
        label.unwrap_or_default(),
        cell(&session.session_key),
        cell(&session.lane),
        cell(&session.trace_id),
    )
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::id::{AgentId, TraceId};
    use polyclaw_domain::job::JobLane;
    use polyclaw_domain::run::RunStatus;
    use polyclaw_domain::session::SessionActivity;

    use super::*;

    #[test]
    fn session_tree_is_drawn_with_branches() {
        let node = |name: &str, children: Vec<SessionNodeView>| SessionNodeView {
            session_key: SessionKey::parse(&format!("agent:main:{name}")).unwrap(),
            agent_id: AgentId::main(),
            label: Some(name.to_owned()),
            depth: 0,
            lane: JobLane::Subagent,
            state: SessionActivity::Idle,
            run_id: None,
            run_status: Some(RunStatus::Ok),
            trace_id: Some(TraceId::new("t")),
            age_ms: 2_000,
            tokens: Some(7),
            children,
        };
        let mut tree = node("top", vec![node("a", vec![node("b", vec![])]), node("c", vec![])]);
        (tree.run_status, tree.tokens) = (None, None);
        let rest = "· lane subagent · 2 s · 7 tokens · trace t";
        let expected = format!(
            "main “top” agent:main:top · idle · lane subagent · 2 s · tokens unknown · trace t\n\
             ├─ main “a” agent:main:a · ok {rest}\n\
             │  └─ main “b” agent:main:b · ok {rest}\n\
             └─ main “c” agent:main:c · ok {rest}"
        );
        assert_eq!(render_tree(&tree), expected);
    }
}
