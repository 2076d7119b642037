//! `polyclaw agents list`: all agents, their bindings, and which agents delegate to which.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::cli::CommandContext;
use crate::client::ApiClient;
use crate::output::{CliOutput, cell_text, visible_line};

#[derive(clap::Args, Default)]
pub struct Args {
    /// Show which messages each agent answers: the [[bindings]] of the config.
    #[arg(long)]
    bindings: bool,
    /// Show which agents may give work to which.
    #[arg(long, conflicts_with = "bindings")]
    tree: bool,
}

pub async fn run(args: &Args, client: &ApiClient, context: &CommandContext) -> anyhow::Result<()> {
    let answer = client.get("/agents").await?;
    let agents = answer["agents"].as_array().cloned().unwrap_or_default();
    Ok(context.output.print_value(&answer, |output| match args {
        Args { tree: true, .. } => delegation_tree(&agents),
        Args { bindings: true, .. } => bindings_table(output, &agents),
        Args { .. } => agents_table(output, &agents),
    })?)
}

fn agents_table(output: &CliOutput, agents: &[Value]) -> String {
    let row = |agent: &Value| {
        let model = match cell_text(&agent["defaults"]["model"]) {
            none if none == "-" => "default".to_owned(),
            model => model,
        };
        let id = cell_text(&agent["agent_id"]);
        let id = if agent["default"] == true { format!("{id} (default)") } else { id };
        vec![id, display_name(agent), model, cell_text(&agent["description"])]
    };
    let rows: Vec<_> = agents.iter().map(row).collect();
    output.format_table(&["ID", "NAME", "MODEL", "DESCRIPTION"], &rows)
}

fn bindings_table(output: &CliOutput, agents: &[Value]) -> String {
    let mut rows = Vec::new();
    for agent in agents {
        let name = cell_text(&agent["agent_id"]);
        let bindings = agent["bindings"].as_array().cloned().unwrap_or_default();
        if agent["default"] == true {
            rows.push(vec![name.clone(), "-".to_owned(), "messages that no binding matches".to_owned()]);
        } else if bindings.is_empty() {
            rows.push(vec![name.clone(), "-".to_owned(), "nothing".to_owned()]);
        }
        for one in bindings {
            let place = format!("bindings[{}]", cell_text(&one["binding"]));
            rows.push(vec![name.clone(), place, describe_match(&one["match"])]);
        }
    }
    output.format_table(&["AGENT", "BINDING", "ANSWERS"], &rows)
}

/// Formats a binding's match, such as `telegram, account biz, group -100123`.
fn describe_match(rule: &Value) -> String {
    let mut parts = vec![cell_text(&rule["channel"])];
    for (field, word) in [("account_id", "account"), ("guild_id", "guild"), ("team_id", "team")] {
        if let Some(value) = rule[field].as_str() {
            parts.push(format!("{word} {}", visible_line(value)));
        }
    }
    if rule["peer"].is_object() {
        parts.push(format!("{} {}", cell_text(&rule["peer"]["kind"]), cell_text(&rule["peer"]["id"])));
    }
    let roles: Vec<String> = rule["roles"].as_array().into_iter().flatten().map(cell_text).collect();
    if !roles.is_empty() {
        parts.push(format!("roles {}", roles.join(" ")));
    }
    parts.join(", ")
}

/// Draws a tree from each agent that no other agent gives work to. Below each agent are those it may give work to.
fn delegation_tree(agents: &[Value]) -> String {
    let below: HashMap<String, Vec<String>> = agents
        .iter()
        .map(|agent| (cell_text(&agent["agent_id"]), delegation_targets(agent, agents)))
        .collect();
    let named: BTreeSet<&String> = below.values().flatten().collect();
    let mut order: Vec<String> = agents.iter().map(|agent| cell_text(&agent["agent_id"])).collect();
    // Every agent in a cycle has an agent above it. The default agent comes first among those.
    order.sort_by_key(|id| {
        let is_default =
            agents.iter().any(|agent| agent["default"] == true && cell_text(&agent["agent_id"]) == *id);
        (named.contains(id), !is_default)
    });
    let (mut lines, mut seen) = (Vec::new(), BTreeSet::new());
    for id in &order {
        if !seen.contains(id) {
            append_branch(id, &below, &mut vec![], &mut seen, &mut lines);
        }
    }
    lines.join("\n")
}

fn append_branch(
    id: &str,
    below: &HashMap<String, Vec<String>>,
    above: &mut Vec<String>,
    seen: &mut BTreeSet<String>,
    lines: &mut Vec<String>,
) {
    seen.insert(id.to_owned());
    let is_ring = above.iter().any(|one| one == id);
    let mark = if is_ring { " (see above)" } else { "" };
    lines.push(format!("{}{id}{mark}", "  ".repeat(above.len())));
    if is_ring {
        return;
    }
    above.push(id.to_owned());
    for helper in below.get(id).into_iter().flatten() {
        append_branch(helper, below, above, seen, lines);
    }
    above.pop();
}

/// Returns the agents that this one may give work to, as delegates or as sub-agents. Omits the agent itself.
fn delegation_targets(agent: &Value, agents: &[Value]) -> Vec<String> {
    let own = cell_text(&agent["agent_id"]);
    let lists = [&agent["delegation"]["allow_agents"], &agent["subagents"]["allow_agents"]];
    let named: Vec<String> = lists
        .into_iter()
        .flat_map(|list| list.as_array().cloned().unwrap_or_default())
        .map(|id| cell_text(&id))
        .collect();
    let all = agents.iter().map(|agent| cell_text(&agent["agent_id"]));
    let is_named = |id: &String| named.iter().any(|name| name == "*" || name == id);
    all.filter(|id| *id != own && is_named(id)).collect()
}

/// Returns the display names of agents, by ID.
pub fn display_names(answer: &Value) -> HashMap<String, String> {
    let listed = answer["agents"].as_array().into_iter().flatten();
    listed.map(|agent| (cell_text(&agent["agent_id"]), display_name(agent))).collect()
}

/// Returns the agent's emoji, if it has one, and its name.
fn display_name(agent: &Value) -> String {
    let name =
        if agent["appearance"]["name"].is_string() { &agent["appearance"]["name"] } else { &agent["name"] };
    match agent["appearance"]["emoji"].as_str() {
        Some(emoji) => format!("{} {}", visible_line(emoji), cell_text(name)),
        None => cell_text(name),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tree_shows_who_gives_work_to_whom_and_ends_where_it_would_go_round() {
        let agents = [
            json!({ "agent_id": "main", "default": true, "delegation": { "allow_agents": ["ops", "lab"] } }),
            json!({ "agent_id": "ops", "subagents": { "allow_agents": ["*"] } }),
            json!({ "agent_id": "lab" }),
            json!({ "agent_id": "alone" }),
        ];
        let drawn = delegation_tree(&agents);
        insta::assert_snapshot!(drawn, @r"
        main
          ops
            main (see above)
            lab
            alone
          lab
        ");
    }

    #[test]
    fn a_binding_is_told_in_words() {
        let rule =
            json!({ "channel": "discord", "account_id": "biz", "guild_id": "g1", "roles": ["a", "b"] });
        assert_eq!(describe_match(&rule), "discord, account biz, guild g1, roles a b");
        let rule = json!({ "channel": "telegram", "peer": { "kind": "group", "id": "-7" } });
        assert_eq!(describe_match(&rule), "telegram, group -7");
    }
}
