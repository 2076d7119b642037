//! `polyclaw pairing`: unknown senders with a pairing code, and approved senders.

use polyclaw_api::pairing::{ApprovePairingBody, PairingList, PairingView};
use serde_json::Value;

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::failure::CommandFailure;
use crate::output::{cell, visible_line};

/// Manage who may write to your agents on chat platforms: list, approve, revoke.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw pairing list
  polyclaw pairing approve K7XP2MQR
  polyclaw pairing revoke telegram:default:123456

Unknown senders get only a pairing code, which is valid for one hour and for one person. Approved senders keep access until
you revoke it.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<PairingCommand>,
}

#[derive(clap::Subcommand)]
enum PairingCommand {
    /// List pending codes, then approved senders.
    #[command(after_help = "Examples:
  polyclaw pairing list")]
    List,
    /// Approve the sender who received this code.
    #[command(after_help = "Examples:
  polyclaw pairing approve K7XP2MQR")]
    Approve {
        /// Code that the sender shows you.
        code: String,
    },
    /// Revoke a sender's access or pending code.
    #[command(after_help = "Examples:
  polyclaw pairing revoke telegram:default:123456")]
    Revoke {
        /// Sender, as `polyclaw pairing list` shows it: channel:account:sender.
        who: String,
    },
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::new(context)?;
    match &args.verb {
        None | Some(PairingCommand::List) => list_pairings(&client, context).await,
        Some(PairingCommand::Approve { code }) => {
            let approved: PairingView =
                client.post_as("/pairing", &ApprovePairingBody { code: code.clone() }).await?;
            Ok(context.output.print_value(&approved, |_| format!("Approved {}.", sender_name(&approved)))?)
        }
        Some(PairingCommand::Revoke { who }) => {
            let mut parts = who.splitn(3, ':');
            let (Some(channel), Some(account), Some(sender)) = (parts.next(), parts.next(), parts.next())
            else {
                return Err(CommandFailure::usage("invalid sender: write channel:account:sender").into());
            };
            let named = [("channel", channel), ("account", account), ("sender", sender)];
            let query = named.map(|(name, value)| format!("{name}={}", encode_segment(value))).join("&");
            let revoked: Value = client.delete_as(&format!("/pairing?{query}")).await?;
            Ok(context.output.print_value(&revoked, |_| format!("Revoked {who}."))?)
        }
    }
}

async fn list_pairings(client: &ApiClient, context: &CommandContext) -> anyhow::Result<()> {
    let answer: PairingList = client.get_as("/pairing").await?;
    let row = |one: &PairingView| {
        vec![
            cell(&one.state),
            cell(&one.code),
            sender_name(one),
            cell(&one.expires_at),
            // The sender chose the name, so it must not control the terminal.
            cell(&one.sender_name),
        ]
    };
    let rows: Vec<_> = answer.pairings.iter().map(row).collect();
    Ok(context.output.print_value(&answer, |output| {
        if rows.is_empty() {
            "No pairings.".to_owned()
        } else {
            output.format_table(&["STATE", "CODE", "SENDER", "EXPIRES", "NAME"], &rows)
        }
    })?)
}

fn sender_name(pairing: &PairingView) -> String {
    visible_line(&format!("{}:{}:{}", pairing.channel, pairing.account, pairing.sender))
}
