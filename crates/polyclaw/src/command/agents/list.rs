//! `polyclaw agents list`: all agents, their bindings, and which agents delegate to which.

use std::collections::{BTreeSet, HashMap};

use polyclaw_api::agents::{AgentList, AgentView};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::route::BindingMatch;

use crate::cli::CommandContext;
use crate::client::ApiClient;
use crate::output::{CliOutput, cell, visible_line};

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
    let answer: AgentList = client.get_as("/agents").await?;
    let agents = &answer.agents;
    Ok(context.output.print_value(&answer, |output| match args {
        Args { tree: true, .. } => delegation_tree(agents),
        Args { bindings: true, .. } => bindings_table(output, agents),
        Args { .. } => agents_table(output, agents),
    })?)
}

fn agents_table(output: &CliOutput, agents: &[AgentView]) -> String {
    let row = |agent: &AgentView| {
        let spec = &agent.spec.0;
        let model = spec.defaults.model.as_ref().map_or_else(|| "default".to_owned(), cell);
        let id = cell(&spec.agent_id);
        let id = if agent.default { format!("{id} (default)") } else { id };
        vec![id, display_name(agent), model, visible_line(&spec.description)]
    };
    let rows: Vec<_> = agents.iter().map(row).collect();
    output.format_table(&["ID", "NAME", "MODEL", "DESCRIPTION"], &rows)
}

fn bindings_table(output: &CliOutput, agents: &[AgentView]) -> String {
    let mut rows = Vec::new();
    for agent in agents {
        let name = cell(&agent.spec.0.agent_id);
        if agent.default {
            rows.push(vec![name.clone(), "-".to_owned(), "messages that no binding matches".to_owned()]);
        } else if agent.bindings.is_empty() {
            rows.push(vec![name.clone(), "-".to_owned(), "nothing".to_owned()]);
        }
        for one in &agent.bindings {
            let place = format!("bindings[{}]", one.binding);
            rows.push(vec![name.clone(), place, describe_match(&one.wanted)]);
        }
    }
    output.format_table(&["AGENT", "BINDING", "ANSWERS"], &rows)
}

/// Formats a binding's match, such as `telegram, account biz, group -100123`.
fn describe_match(rule: &BindingMatch) -> String {
    let mut parts = vec![visible_line(&rule.channel)];
    for (value, word) in [(&rule.account_id, "account"), (&rule.guild_id, "guild"), (&rule.team_id, "team")] {
        if let Some(value) = value {
            parts.push(format!("{word} {}", visible_line(value)));
        }
    }
    if let Some(peer) = &rule.peer {
        parts.push(format!("{} {}", cell(&peer.kind), visible_line(&peer.id)));
    }
    let roles: Vec<String> = rule.roles.iter().map(|role| visible_line(role)).collect();
    if !roles.is_empty() {
        parts.push(format!("roles {}", roles.join(" ")));
    }
    parts.join(", ")
}

/// Draws a tree from each agent that no other agent gives work to. Below each agent are those it may give work to.
fn delegation_tree(agents: &[AgentView]) -> String {
    let id_of = |agent: &AgentView| agent.spec.0.agent_id.to_string();
    let below: HashMap<String, Vec<String>> =
        agents.iter().map(|agent| (id_of(agent), delegation_targets(agent, agents))).collect();
    let named: BTreeSet<&String> = below.values().flatten().collect();
    let mut order: Vec<String> = agents.iter().map(id_of).collect();
    // Every agent in a cycle has an agent above it. The default agent comes first among those.
    order.sort_by_key(|id| {
        let is_default = agents.iter().any(|agent| agent.default && id_of(agent) == *id);
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
fn delegation_targets(agent: &AgentView, agents: &[AgentView]) -> Vec<String> {
    let spec = &agent.spec.0;
    let delegates = spec.delegation.iter().flat_map(|policy| &policy.allow_agents);
    let named: Vec<&String> = delegates.chain(&spec.subagents.allow_agents).collect();
    let others = agents.iter().map(|other| &other.spec.0.agent_id).filter(|id| **id != spec.agent_id);
    let is_named = |id: &&AgentId| named.iter().any(|name| *name == "*" || *name == id.as_str());
    others.filter(is_named).map(ToString::to_string).collect()
}

/// Returns the display names of agents, by ID.
pub fn display_names(answer: &AgentList) -> HashMap<String, String> {
    answer.agents.iter().map(|agent| (agent.spec.0.agent_id.to_string(), display_name(agent))).collect()
}

/// Returns the agent's emoji, if it has one, and its name.
fn display_name(agent: &AgentView) -> String {
    let name = visible_line(agent.appearance.name.as_ref().unwrap_or(&agent.spec.0.name));
    match &agent.appearance.emoji {
        Some(emoji) => format!("{} {name}", visible_line(emoji)),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn agent(id: &str, fields: serde_json::Value) -> AgentView {
        let mut agent = json!({
            "agent_id": id, "name": id, "source": "config", "default": false, "bindings": [],
            "appearance": { "name": null, "emoji": null, "avatar": null },
            "main_session_key": format!("agent:{id}:main"),
            "created_at": "2026-01-02T03:04:05.000Z", "updated_at": "2026-01-02T03:04:05.000Z",
        });
        for (name, value) in fields.as_object().unwrap() {
            agent[name] = value.clone();
        }
        serde_json::from_value(agent).unwrap()
    }

    #[test]
    fn delegation_tree_stops_at_cycles() {
        let agents = [
            agent("main", json!({ "default": true, "delegation": { "allow_agents": ["ops", "lab"] } })),
            agent("ops", json!({ "subagents": { "allow_agents": ["*"] } })),
            agent("lab", json!({})),
            agent("alone", json!({})),
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
    fn binding_match_is_described_in_words() {
        let rule =
            json!({ "channel": "discord", "account_id": "biz", "guild_id": "g1", "roles": ["a", "b"] });
        let rule: BindingMatch = serde_json::from_value(rule).unwrap();
        assert_eq!(describe_match(&rule), "discord, account biz, guild g1, roles a b");
        let rule = json!({ "channel": "telegram", "peer": { "kind": "group", "id": "-7" } });
        let rule: BindingMatch = serde_json::from_value(rule).unwrap();
        assert_eq!(describe_match(&rule), "telegram, group -7");
    }
}
