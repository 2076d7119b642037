//! `polyclaw pairing`: strangers who wait to be let in, and people who were.

use serde_json::{Value, json};

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::output::{cell, safe};

/// Who may write to your agents by a chat platform: list, approve, revoke.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw pairing list
  polyclaw pairing approve K7XP2MQR
  polyclaw pairing revoke telegram:default:123456

Somebody who writes to an account and is not known gets a code and nothing else. The code is good for an hour, and for
one person. Whoever you let in stays until you revoke it.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Those who wait with a code, then those who were let in.
    #[command(after_help = "Examples:
  polyclaw pairing list")]
    List,
    /// Let in whoever was told this code.
    #[command(after_help = "Examples:
  polyclaw pairing approve K7XP2MQR")]
    Approve {
        /// The code as they show it.
        code: String,
    },
    /// Take somebody's access or code away.
    #[command(after_help = "Examples:
  polyclaw pairing revoke telegram:default:123456")]
    Revoke {
        /// Who, as `polyclaw pairing list` writes it: channel:account:sender.
        who: String,
    },
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let client = Client::new(context)?;
    match &args.verb {
        None | Some(Verb::List) => list(&client, context).await,
        Some(Verb::Approve { code }) => {
            let approved = client.post("/pairing", &json!({ "code": code })).await?;
            Ok(context.output.say(&approved, |_| format!("{} is let in.", who(&approved)))?)
        }
        Some(Verb::Revoke { who }) => {
            let mut parts = who.splitn(3, ':');
            let (Some(channel), Some(account), Some(sender)) = (parts.next(), parts.next(), parts.next())
            else {
                return Err(Failure::usage("who is written channel:account:sender").into());
            };
            let named = [("channel", channel), ("account", account), ("sender", sender)];
            let query = named.map(|(name, value)| format!("{name}={}", segment(value))).join("&");
            let revoked = client.delete(&format!("/pairing?{query}")).await?;
            Ok(context.output.say(&revoked, |_| format!("{who} is not let in any more."))?)
        }
    }
}

async fn list(client: &Client, context: &Context) -> anyhow::Result<()> {
    let answer = client.get("/pairing").await?;
    let pairings = answer["pairings"].as_array().cloned().unwrap_or_default();
    let row = |one: &Value| {
        // A stranger chose their name: it must not steer a terminal.
        let name = safe(&cell(&one["sender_name"]));
        vec![cell(&one["state"]), cell(&one["code"]), safe(&who(one)), cell(&one["expires_at"]), name]
    };
    let rows: Vec<_> = pairings.iter().map(row).collect();
    Ok(context.output.say(&answer, |output| match rows.is_empty() {
        true => "Nobody waits, and nobody was let in.".to_owned(),
        false => output.table(&["STATE", "CODE", "WHO", "UNTIL", "NAME"], &rows),
    })?)
}

fn who(pairing: &Value) -> String {
    format!("{}:{}:{}", cell(&pairing["channel"]), cell(&pairing["account"]), cell(&pairing["sender"]))
}
