//! `polyclaw tools`: what agents can use, and which rule decides.

use serde_json::Value;

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::output::cell;

/// What agents can use, and which rule decides.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw tools
  polyclaw tools list --agent ops
  polyclaw tools explain shell --agent ops
  polyclaw tools explain http_fetch --session agent:main:webhook:ci:dm:build

What a model is shown and what can be run are decided by the same function; `explain` prints what it says.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Every tool there is, and whether an agent has it.
    #[command(after_help = "Examples:
  polyclaw tools list
  polyclaw tools list --agent ops")]
    List(Place),
    /// Every layer's word on one tool, and the line that would change what was decided.
    #[command(after_help = "Examples:
  polyclaw tools explain shell --agent ops
  polyclaw tools explain http_fetch --session agent:main:webhook:ci:dm:build")]
    Explain {
        /// The tool's name.
        tool: String,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(clap::Args, Default)]
struct Place {
    /// For this agent; the session's, else the default one, if left out.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// In this session; else as if you asked in the agent's own.
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
}

impl Place {
    fn query(&self) -> String {
        let named = [("agent", &self.agent), ("session", &self.session)];
        let pairs = named.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}={}", segment(value))).collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    }
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let client = Client::new(context)?;
    match &args.verb {
        None => list(&client, context, &Place::default()).await,
        Some(Verb::List(place)) => list(&client, context, place).await,
        Some(Verb::Explain { tool, place }) => {
            let told = client.get(&format!("/tools/{}/explain{}", segment(tool), place.query())).await?;
            Ok(context.output.say(&told, |output| {
                explained(&told, |rows| output.table(&["LAYER", "SAYS", "RULE", "SET IN"], rows))
            })?)
        }
    }
}

async fn list(client: &Client, context: &Context, place: &Place) -> anyhow::Result<()> {
    let told = client.get(&format!("/tools{}", place.query())).await?;
    let tools = told["tools"].as_array().cloned().unwrap_or_default();
    let row = |tool: &Value| {
        let has = if tool["allowed"] == true { "yes" } else { "no" };
        let asks = if tool["asks"] == true || tool["consent"] == "by_call" { "yes" } else { "" };
        vec![cell(&tool["name"]), has.to_owned(), asks.to_owned(), cell(&tool["risk"]), cell(&tool["rule"])]
    };
    let rows: Vec<_> = tools.iter().map(row).collect();
    Ok(context
        .output
        .say(&told, |output| output.table(&["TOOL", "HAS IT", "ASKS", "RISK", "RULE"], &rows))?)
}

fn explained(told: &Value, table: impl Fn(&[Vec<String>]) -> String) -> String {
    let layers = told["layers"].as_array().cloned().unwrap_or_default();
    let row = |layer: &Value| {
        let verdict = if layer["allows"] == true { "yes" } else { "NO" };
        let says = format!("{verdict}: {}", cell(&layer["says"]));
        vec![cell(&layer["layer"]), says, cell(&layer["rule"]), cell(&layer["set_in"])]
    };
    let rows: Vec<_> = layers.iter().map(row).collect();
    let (name, agent) = (cell(&told["name"]), cell(&told["agent_id"]));
    let verdict = match (&told["allowed"], &told["asks"]) {
        (Value::Bool(true), Value::Bool(true)) => "has it, and asks a person before each call",
        (Value::Bool(true), _) => "has it",
        _ => "does not have it",
    };
    let change = told["change"].as_str().map(|line| format!("\nTo change it: {line}")).unwrap_or_default();
    format!("{agent} {verdict}: {name}, decided by {}\n\n{}{change}", cell(&told["rule"]), table(&rows))
}
