//! `polyclaw cron`: what agents do at set times.

use serde_json::{Value, json};

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::output::cell;

/// What agents do at set times: list, run one now.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw cron list
  polyclaw cron run morning

Jobs are in config.toml:
  [[cron]]
  id = \"morning\"
  schedule = \"30 8 * * 1-5\"                 # or \"every 10m\", or \"at 2026-12-01 09:00\"
  timezone = \"Europe/Berlin\"
  message = \"What is on today?\"
  deliver_to = { channel = \"telegram\", peer = \"123\" }")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Every job and heartbeat, and when it is due.
    List,
    /// Run one now, beside its schedule.
    Run {
        /// The ID that `polyclaw cron list` shows.
        id: String,
    },
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let client = Client::new(context)?;
    match &args.verb {
        None | Some(Verb::List) => list(&client, context).await,
        Some(Verb::Run { id }) => {
            let begun = client.post(&format!("/cron/{}/run", segment(id)), &json!({})).await?;
            Ok(context.output.say(&begun, |_| match begun["session_key"].as_str() {
                Some(session) => format!("It runs in {session}."),
                None => "There is nothing to do.".to_owned(),
            })?)
        }
    }
}

async fn list(client: &Client, context: &Context) -> anyhow::Result<()> {
    let answer = client.get("/cron").await?;
    let row =
        |one: &Value| ["id", "rule", "agent_id", "last_due", "next_due"].map(|key| cell(&one[key])).to_vec();
    let rows: Vec<_> = answer["cron"].as_array().into_iter().flatten().map(row).collect();
    Ok(context.output.say(&answer, |output| match rows.is_empty() {
        true => "Nothing is scheduled. `polyclaw cron --help` shows how.".to_owned(),
        false => output.table(&["ID", "SCHEDULE", "AGENT", "LAST DUE", "NEXT DUE"], &rows),
    })?)
}
