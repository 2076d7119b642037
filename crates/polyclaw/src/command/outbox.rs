//! `polyclaw outbox`: outgoing messages, including held ones.

use polyclaw_api::outbox::{OutboxList, OutboxMessageView};
use serde_json::json;

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::output::{cell, visible_line};

const DEFAULT_LISTED_MESSAGES: usize = 1000;

/// Manage outgoing answers to channels such as webhooks: list, resend, dismiss.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw outbox list --state unknown
  polyclaw outbox resend 01j…
  polyclaw outbox dismiss 01j…

An answer is `unknown` if a crash hid whether it arrived. It is held, and never resent until you decide.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<OutboxCommand>,
}

#[derive(clap::Subcommand)]
enum OutboxCommand {
    /// List all outgoing messages, including sent ones, oldest first.
    #[command(after_help = "Examples:
  polyclaw outbox list
  polyclaw outbox list --state unknown")]
    List {
        /// Only messages in this state: pending, sending, sent, unknown or failed.
        #[arg(long)]
        state: Option<String>,
        /// Maximum number of messages to list.
        #[arg(long, value_name = "N", default_value_t = DEFAULT_LISTED_MESSAGES)]
        limit: usize,
    },
    /// Resend a held message. It may arrive twice.
    #[command(after_help = "Examples:
  polyclaw outbox resend 01j…")]
    Resend {
        /// ID that `polyclaw outbox` lists.
        id: String,
    },
    /// Dismiss a held message. It is not sent.
    #[command(after_help = "Examples:
  polyclaw outbox dismiss 01j…")]
    Dismiss {
        /// ID that `polyclaw outbox` lists.
        id: String,
    },
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::new(context)?;
    let (id, verb, done) = match &args.verb {
        None => return list_outbox(&client, context, None, DEFAULT_LISTED_MESSAGES).await,
        Some(OutboxCommand::List { state, limit }) => {
            return list_outbox(&client, context, state.as_deref(), *limit).await;
        }
        Some(OutboxCommand::Resend { id }) => (id, "resend", "Resending the message."),
        Some(OutboxCommand::Dismiss { id }) => (id, "dismiss", "Message dismissed."),
    };
    let answer: OutboxMessageView =
        client.post_as(&format!("/outbox/{}/{verb}", encode_segment(id)), &json!({})).await?;
    Ok(context.output.print_value(&answer, |_| done.to_owned())?)
}

async fn list_outbox(
    client: &ApiClient,
    context: &CommandContext,
    state: Option<&str>,
    limit: usize,
) -> anyhow::Result<()> {
    let filter = state.map(|state| format!("?state={}", encode_segment(state))).unwrap_or_default();
    let outbox: Vec<OutboxMessageView> =
        client.list_pages::<OutboxList>(&format!("/outbox{filter}"), limit).await?;
    let row = |one: &OutboxMessageView| {
        vec![
            cell(&one.id),
            cell(&one.state),
            visible_line(&one.address.channel),
            cell(&one.session_key),
            cell(&one.error),
        ]
    };
    let rows: Vec<_> = outbox.iter().map(row).collect();
    Ok(context.output.print_value(&json!({ "outbox": outbox }), |output| {
        if rows.is_empty() {
            "The outbox is empty.".to_owned()
        } else {
            output.format_table(&["ID", "STATE", "CHANNEL", "SESSION", "ERROR"], &rows)
        }
    })?)
}
