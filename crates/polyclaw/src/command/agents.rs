//! `polyclaw agents`: who answers.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::output::{cell, safe};

/// Who answers: list, show, add, set, delete.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw agents list
  polyclaw agents show main
  polyclaw agents add ops --model openai/gpt-5-mini --prompt \"You look after our servers.\"
  polyclaw agents set ops '{\"policy\":{\"tools\":{\"allow\":[\"*\",\"shell\"]}}}'
  polyclaw agents delete ops

Agents of the config file are changed there, and read again on SIGHUP.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// All agents.
    List,
    /// Show all settings of one agent.
    Show {
        /// The ID that `polyclaw agents` lists.
        id: String,
    },
    /// Make an agent.
    Add(Add),
    /// Change an agent, from its next turn on.
    Set {
        /// The ID that `polyclaw agents` lists.
        id: String,
        /// A JSON merge patch: named settings are set, null removes one.
        patch: String,
    },
    /// Take an agent away; its conversations stay readable.
    Delete {
        /// The ID that `polyclaw agents` lists.
        id: String,
    },
}

#[derive(clap::Args)]
struct Add {
    /// A lower-case word; it is part of session keys.
    id: String,
    /// The name people see. The id if left out.
    #[arg(long)]
    name: Option<String>,
    /// What it is for, in a sentence.
    #[arg(long, default_value = "")]
    description: String,
    /// The model that answers, as provider/model.
    #[arg(long)]
    model: Option<String>,
    /// What the model is told about its task.
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// The folder of its files: absolute, or below the instance's workspace.
    #[arg(long, value_name = "FOLDER")]
    workspace: Option<String>,
}

impl Add {
    fn body(&self) -> Value {
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

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let client = Client::new(context)?;
    match &args.verb {
        None | Some(Verb::List) => list(&client, context).await,
        Some(Verb::Show { id }) => {
            let agent = client.get(&format!("/agents/{}", segment(id))).await?;
            Ok(context.output.say(&agent, |_| pretty(&agent))?)
        }
        Some(Verb::Add(add)) => {
            let made = client.post("/agents", &add.body()).await?;
            Ok(context.output.say(&made, |_| format!("{} is there and can be talked to.", add.id))?)
        }
        Some(Verb::Set { id, patch }) => {
            let patch: Value = serde_json::from_str(patch)
                .map_err(|error| Failure::usage(format!("the change is not JSON: {error}")))?;
            let changed = client.patch(&format!("/agents/{}", segment(id)), &patch).await?;
            Ok(context.output.say(&changed, |_| format!("{id} is changed from its next turn on."))?)
        }
        Some(Verb::Delete { id }) => {
            let gone = client.delete(&format!("/agents/{}", segment(id))).await?;
            Ok(context.output.say(&gone, |_| format!("{id} is gone; its conversations stay readable."))?)
        }
    }
}

async fn list(client: &Client, context: &Context) -> anyhow::Result<()> {
    let answer = client.get("/agents").await?;
    let agents = answer["agents"].as_array().cloned().unwrap_or_default();
    let row = |agent: &Value| {
        let model = cell(&agent["defaults"]["model"]);
        vec![cell(&agent["agent_id"]), face(agent), model, cell(&agent["description"])]
    };
    let rows: Vec<_> = agents.iter().map(row).collect();
    Ok(context.output.say(&answer, |output| output.table(&["ID", "NAME", "MODEL", "DESCRIPTION"], &rows))?)
}

/// How agents show themselves, by id.
pub fn faces(answer: &Value) -> HashMap<String, String> {
    let listed = answer["agents"].as_array().into_iter().flatten();
    listed.map(|agent| (cell(&agent["agent_id"]), face(agent))).collect()
}

/// Its emoji, if it has one, and its name.
fn face(agent: &Value) -> String {
    let name = if agent["shown"]["name"].is_string() { &agent["shown"]["name"] } else { &agent["name"] };
    match agent["shown"]["emoji"].as_str() {
        Some(emoji) => format!("{} {}", safe(emoji), cell(name)),
        None => cell(name),
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
