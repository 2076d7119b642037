//! `polyclaw audit`: what was changed through the control plane, and whether that record is whole.

use serde_json::{Value, json};

use crate::cli::Context;
use crate::client::Client;
use crate::control;
use crate::failure::{Exit, Failure};
use crate::output::{cell, safe};

/// What was changed, by whom; whether the record is whole.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw audit list
  polyclaw audit verify

Each entry holds the hash of the one before it. `verify` counts them all again and names the first that does not fit,
and what is missing at the end by a row of the registry and by the file cp/audit.head. Who can write both can make
a record that fits: write its `head` down on another machine now and then, and that shows too.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// The newest entries first.
    #[command(after_help = "Examples:
  polyclaw audit list
  polyclaw audit list --limit 500 --json")]
    List {
        /// List at most so many.
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Count every hash again. Needs no control plane.
    #[command(after_help = "Examples:
  polyclaw audit verify
  polyclaw audit verify --json")]
    Verify,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let client = Client::of_control(context);
    match &args.verb {
        Some(Verb::Verify) => verify(client, context).await,
        Some(Verb::List { limit }) => list(&client?, context, *limit).await,
        None => list(&client?, context, 50).await,
    }
}

async fn list(client: &Client, context: &Context, limit: usize) -> anyhow::Result<()> {
    let entries = client.list("/audit", "entries", limit).await?;
    let row =
        |one: &Value| ["seq", "at", "who", "action", "detail"].map(|name| safe(&cell(&one[name]))).to_vec();
    let rows: Vec<_> = entries.iter().map(row).collect();
    Ok(context.output.say(&json!({ "entries": entries }), |output| match rows.is_empty() {
        true => "Nothing was changed yet.".to_owned(),
        false => output.table(&["#", "WHEN", "WHO", "WHAT", "OF"], &rows),
    })?)
}

async fn verify(client: Result<Client, Failure>, context: &Context) -> anyhow::Result<()> {
    let answered = match client {
        Ok(client) => client.get("/audit/verify").await,
        Err(failure) => Err(failure),
    };
    let verdict = match answered {
        Err(failure) if failure.exit == Exit::Unavailable => by_ourselves(context).await?,
        answered => answered?,
    };
    if verdict["whole"] == true {
        let text =
            format!("The record is whole: {} entries, head {}.", verdict["entries"], cell(&verdict["head"]));
        return Ok(context.output.say(&verdict, |_| text)?);
    }
    let message = format!("entry {} does not fit: {}", verdict["broken_at"], cell(&verdict["why"]));
    let mut failure = Failure::failed("audit_broken", message)
        .hint("somebody changed the registry behind the control plane's back: restore it from a copy");
    failure.details = Some(Box::new(verdict));
    Err(failure.into())
}

/// Where nothing serves the record, it is read as it lies.
async fn by_ourselves(context: &Context) -> anyhow::Result<Value> {
    let control = control::open(&context.home)?;
    let (chain, broken) = control.verify_audit().await.map_err(Failure::from)?;
    Ok(json!({
        "whole": broken.is_none(),
        "entries": chain.len(),
        "head": chain.head_hash(),
        "broken_at": broken.as_ref().map(|broken| broken.seq),
        "why": broken.map(|broken| broken.why),
    }))
}
