//! `polyclaw outbox`: messages on their way out, and those that are held.

use serde_json::{Value, json};

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::output::cell;

/// Messages on their way out: list, resend, dismiss.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw outbox list --state unknown
  polyclaw outbox resend 01j…
  polyclaw outbox dismiss 01j…

A message is `unknown` when a crash left it open whether it arrived. It is never sent again by itself.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// What is there.
    List {
        /// pending, sending, sent, unknown or failed.
        #[arg(long)]
        state: Option<String>,
    },
    /// Send a held message again, knowing that it may arrive twice.
    Resend { id: String },
    /// Give a held message up.
    Dismiss { id: String },
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let client = Client::new(context)?;
    let (id, verb, done) = match &args.verb {
        None => return list(&client, context, None).await,
        Some(Verb::List { state }) => return list(&client, context, state.as_deref()).await,
        Some(Verb::Resend { id }) => (id, "resend", "It is sent again."),
        Some(Verb::Dismiss { id }) => (id, "dismiss", "It is given up."),
    };
    let answer = client.post(&format!("/outbox/{}/{verb}", segment(id)), &json!({})).await?;
    Ok(context.output.say(&answer, |_| done.to_owned())?)
}

async fn list(client: &Client, context: &Context, state: Option<&str>) -> anyhow::Result<()> {
    let filter = state.map(|state| format!("&state={}", segment(state))).unwrap_or_default();
    let answer = client.get(&format!("/outbox?limit=1000{filter}")).await?;
    let outbox = answer["outbox"].as_array().cloned().unwrap_or_default();
    let row = |one: &Value| {
        let error = cell(&one["error"]);
        vec![
            cell(&one["id"]),
            cell(&one["state"]),
            cell(&one["address"]["channel"]),
            cell(&one["session_key"]),
            error,
        ]
    };
    let rows: Vec<_> = outbox.iter().map(row).collect();
    Ok(context.output.say(&answer, |output| match rows.is_empty() {
        true => "Nothing is there.".to_owned(),
        false => output.table(&["ID", "STATE", "CHANNEL", "SESSION", "ERROR"], &rows),
    })?)
}
