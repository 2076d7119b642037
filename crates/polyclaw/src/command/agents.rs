//! `polyclaw agents`: manages agents and their bindings.

mod bindings;
mod delete;
mod identity;
mod list;

use polyclaw_api::agents::AgentView;
use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::failure::CommandFailure;

pub use list::display_names;

/// Manage agents: list, show, add, set, set-identity, bind, unbind, delete.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw agents list
  polyclaw agents list --bindings
  polyclaw agents show main
  polyclaw agents add ops --model openai/gpt-5-mini --prompt \"You look after our servers.\"
  polyclaw agents set ops '{\"policy\":{\"tools\":{\"allow\":[\"*\",\"shell\"]}}}'
  polyclaw agents bind ops --channel telegram --kind group --peer -100123
  polyclaw agents delete ops

Agents in the config file are changed in that file, which is reloaded on SIGHUP.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<AgentsCommand>,
}

#[derive(clap::Subcommand)]
enum AgentsCommand {
    /// List all agents.
    #[command(after_help = "Examples:
  polyclaw agents list
  polyclaw agents list --bindings
  polyclaw agents list --tree --json")]
    List(list::Args),
    /// Show all settings of one agent.
    #[command(after_help = "Examples:
  polyclaw agents show main
  polyclaw agents show ops --json")]
    Show {
        /// ID that `polyclaw agents` lists.
        id: String,
    },
    /// Create an agent.
    #[command(after_help = "Examples:
  polyclaw agents add ops
  polyclaw agents add ops --model openai/gpt-5-mini --prompt \"You look after our servers.\"
  polyclaw agents add research --workspace research --description \"Reads papers\"")]
    Add(AgentsAddArgs),
    /// Change an agent's settings. The change applies from its next turn.
    #[command(after_help = "Examples:
  polyclaw agents set ops '{\"defaults\":{\"model\":\"openai/gpt-5-mini\"}}'
  polyclaw agents set ops '{\"policy\":{\"tools\":{\"deny\":[\"shell\"]}}}'")]
    Set {
        /// ID that `polyclaw agents` lists.
        id: String,
        /// A JSON merge patch: named settings are replaced; null removes a setting.
        patch: String,
    },
    /// Set the name, emoji and picture that people see.
    #[command(after_help = "Examples:
  polyclaw agents set-identity ops --name Olga --emoji 🛠
  polyclaw agents set-identity main --avatar https://example.org/main.png

For an agent in the config file, the file is edited; its comments are kept.")]
    SetIdentity(identity::Args),
    /// Route messages to an agent: adds a [[bindings]] entry to the config, keeping its comments.
    #[command(after_help = "Examples:
  polyclaw agents bind ops --channel telegram
  polyclaw agents bind ops --channel telegram --kind group --peer -100123
  polyclaw agents bind ops --channel discord --account biz --guild g1 --role admin,ops

The closest binding wins: `polyclaw route explain` shows which.")]
    Bind(bindings::Args),
    /// Remove bindings of an agent from the config: those that match the options, or all.
    #[command(after_help = "Examples:
  polyclaw agents unbind ops --channel telegram --kind group --peer -100123
  polyclaw agents unbind ops --all")]
    Unbind(bindings::AgentsUnbindArgs),
    /// Delete an agent. Its conversations stay readable.
    #[command(after_help = "Examples:
  polyclaw agents delete ops
  polyclaw agents delete ops --force")]
    Delete(delete::Args),
}

#[derive(clap::Args)]
struct AgentsAddArgs {
    /// ID of the agent: a lower-case word that becomes part of session keys.
    id: String,
    /// Name that people see. Defaults to the ID.
    #[arg(long)]
    name: Option<String>,
    /// Purpose of the agent, in one sentence.
    #[arg(long, default_value = "")]
    description: String,
    /// Model of the agent, as provider/model.
    #[arg(long)]
    model: Option<String>,
    /// System prompt: instructions for the model.
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Folder of the agent's files: absolute, or relative to the instance's workspace.
    #[arg(long, value_name = "FOLDER")]
    workspace: Option<String>,
}

impl AgentsAddArgs {
    fn request_body(&self) -> Value {
        let mut defaults = serde_json::Map::new();
        if let Some(model) = &self.model {
            defaults.insert("model".to_owned(), json!(model));
        }
        if let Some(prompt) = &self.prompt {
            defaults.insert("system_prompt".to_owned(), json!(prompt));
        }
        let mut body = json!({
            "agent_id": self.id,
            "name": self.name.as_ref().unwrap_or(&self.id),
            "description": self.description,
            "defaults": defaults,
        });
        if let Some(workspace) = &self.workspace {
            body["workspace"] = json!(workspace);
        }
        body
    }
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::new(context)?;
    match &args.verb {
        None => list::run(&list::Args::default(), &client, context).await,
        Some(AgentsCommand::List(args)) => list::run(args, &client, context).await,
        Some(AgentsCommand::Show { id }) => {
            let agent: AgentView = client.get_as(&agent_path(id)).await?;
            let text = serde_json::to_string_pretty(&serde_json::to_value(&agent)?)?;
            Ok(context.output.print_value(&agent, |_| text)?)
        }
        Some(AgentsCommand::Add(add)) => {
            let made: AgentView = client.post_as("/agents", &add.request_body()).await?;
            Ok(context.output.print_value(&made, |_| format!("Created agent {}.", add.id))?)
        }
        Some(AgentsCommand::Set { id, patch }) => {
            let patch: Value = serde_json::from_str(patch)
                .map_err(|error| CommandFailure::usage(format!("the patch is not valid JSON: {error}")))?;
            let changed: AgentView = client.patch_as(&agent_path(id), &patch).await?;
            Ok(context
                .output
                .print_value(&changed, |_| format!("Changed agent {id}; takes effect at its next turn."))?)
        }
        Some(AgentsCommand::SetIdentity(args)) => identity::run(args, &client, context).await,
        Some(AgentsCommand::Bind(args)) => bindings::bind_agent(args, &client, context).await,
        Some(AgentsCommand::Unbind(args)) => bindings::unbind_agent(args, &client, context).await,
        Some(AgentsCommand::Delete(args)) => delete::run(args, &client, context).await,
    }
}

fn agent_path(id: &str) -> String {
    format!("/agents/{}", encode_segment(id))
}
