//! `polyclaw agents set-identity`: sets the name, emoji and picture that people see.

use polyclaw_api::agents::AgentView;
use polyclaw_control::config::edit;
use serde_json::{Map, Value, json};

use super::agent_path;
use crate::cli::CommandContext;
use crate::client::ApiClient;
use crate::config_edit;
use crate::failure::CommandFailure;

#[derive(clap::Args)]
pub struct Args {
    /// ID that `polyclaw agents` lists.
    #[arg(required_unless_present = "agent")]
    id: Option<String>,
    /// The same ID, as an option.
    #[arg(long, value_name = "ID", conflicts_with = "id")]
    agent: Option<String>,
    /// Name that people see.
    #[arg(long)]
    name: Option<String>,
    /// Emoji shown in front of the name.
    #[arg(long)]
    emoji: Option<String>,
    /// Picture: a URL, or a file in the agent's workspace.
    #[arg(long, value_name = "URL|FILE")]
    avatar: Option<String>,
}

pub async fn run(args: &Args, client: &ApiClient, context: &CommandContext) -> anyhow::Result<()> {
    let named = [("name", &args.name), ("emoji", &args.emoji), ("avatar", &args.avatar)];
    let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value.as_ref()?))));
    let identity: Map<String, Value> = named.collect();
    if identity.is_empty() {
        return Err(CommandFailure::usage("nothing to change: pass --name, --emoji or --avatar").into());
    }
    let patch = json!({ "identity": identity });
    let id = args.id.as_deref().or(args.agent.as_deref()).unwrap_or_default();
    let agent: AgentView = client.get_as(&agent_path(id)).await?;
    if agent.source == "config" {
        let change = |text: &str| Ok(edit::merge_named(text, "agents.list", ("id", id), &patch)?);
        return config_edit::edit_config(context, client, change).await;
    }
    let changed: AgentView = client.patch_as(&agent_path(id), &patch).await?;
    Ok(context.output.print_value(&changed, |_| format!("Changed the identity of {id}."))?)
}
