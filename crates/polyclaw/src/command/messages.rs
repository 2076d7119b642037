//! `polyclaw messages`: messages between instances.

mod rules;

use polyclaw_api::control::messages::{
    EnvelopeDetail, EnvelopeEventView, EnvelopeList, EnvelopeReceipt, EnvelopeView,
};
use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::failure::CommandFailure;
use crate::output::{cell, visible_line};

/// Manage messages between the instances of this home: list, show, send, replay, dead-letter, rules.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw messages list --to main
  polyclaw messages list --correlation 01k5….a1b2c3d4e5f60718
  polyclaw messages send main research task.handoff '{\"task\": \"Compare the three papers\"}'
  polyclaw messages dead-letter
  polyclaw messages replay 01k5…
  polyclaw messages rules allow main research 'task.*'

`polyclaw messages rules allow` lets one instance write to another. A control plane must run: `polyclaw up` or
`polyclaw control`.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<MessagesCommand>,
}

#[derive(clap::Subcommand)]
enum MessagesCommand {
    /// List messages, newest first. Messages of one correlation are in order.
    #[command(after_help = "Examples:
  polyclaw messages list --to main
  polyclaw messages list --state failed --json")]
    List {
        /// Only messages to this instance, by name or ID.
        #[arg(long)]
        to: Option<String>,
        /// Only messages from this instance, by name or ID.
        #[arg(long)]
        from: Option<String>,
        /// Only messages in this state.
        #[arg(long, value_parser = ["queued", "delivered", "acknowledged", "failed", "dead_letter"])]
        state: Option<String>,
        /// Only messages with this correlation ID.
        #[arg(long, value_name = "ID")]
        correlation: Option<String>,
        /// Maximum number of messages.
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Show one message with its history.
    #[command(after_help = "Examples:
  polyclaw messages show 01k5…")]
    Show {
        /// ID of the message.
        message: String,
    },
    /// Send a message on behalf of an instance.
    #[command(after_help = "Examples:
  polyclaw messages send main research task.handoff '{\"task\": \"Compare the three papers\"}'")]
    Send {
        /// Sending instance, by name or ID.
        from: String,
        /// Receiving instance, by name or ID.
        to: String,
        /// Type of the message, such as task.handoff.
        r#type: String,
        /// Payload, as JSON.
        payload: String,
        /// Correlation ID that groups related messages.
        #[arg(long, value_name = "ID")]
        correlation: Option<String>,
        /// Idempotency key. A repeated send with the same key creates no second message.
        #[arg(long)]
        key: Option<String>,
    },
    /// List dead letters: messages that could not be delivered.
    #[command(after_help = "Examples:
  polyclaw messages dead-letter")]
    DeadLetter,
    /// Send a dead letter again.
    #[command(after_help = "Examples:
  polyclaw messages replay 01k5…")]
    Replay {
        /// ID of the message.
        message: String,
    },
    /// Manage the rules for which instance may send what to which: list, allow, set, remove.
    Rules(rules::Args),
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::for_control_plane(context)?;
    match &args.verb {
        None => list_messages(&client, context, "/messages", 50).await,
        Some(MessagesCommand::List { to, from, state, correlation, limit }) => {
            let wishes =
                [("to", to), ("from", from), ("state", state), ("correlation_id", correlation)].into_iter();
            let query: Vec<String> = wishes
                .filter_map(|(name, requested)| {
                    Some(format!("{name}={}", encode_segment(requested.as_ref()?)))
                })
                .collect();
            list_messages(&client, context, &format!("/messages?{}", query.join("&")), *limit).await
        }
        Some(MessagesCommand::DeadLetter) => {
            list_messages(&client, context, "/messages/dead_letter", 1_000).await
        }
        Some(MessagesCommand::Show { message }) => {
            let found: EnvelopeDetail =
                client.get_as(&format!("/messages/{}", encode_segment(message))).await?;
            Ok(context.output.print_value(&found, |output| {
                let rows: Vec<_> = found.events.iter().map(event_cells).collect();
                let events = output.format_table(&["TIME", "EVENT", "DETAIL"], &rows);
                format!(
                    "{}\n{}\n\n{events}",
                    message_line(&found.message),
                    visible_line(&found.payload.to_string())
                )
            })?)
        }
        Some(MessagesCommand::Send { from, to, r#type, payload, correlation, key }) => {
            let payload: Value = serde_json::from_str(payload)
                .map_err(|error| CommandFailure::usage(format!("the payload is not valid JSON: {error}")))?;
            let body = json!({
                "from": from, "to": to, "type": r#type, "payload": payload, "correlation_id": correlation,
                "idempotency_key": key,
            });
            let sent: EnvelopeReceipt = client.post_as("/messages", &body).await?;
            Ok(context.output.print_value(&sent, |_| {
                format!("{} is {}", visible_line(&sent.id), visible_line(&sent.state))
            })?)
        }
        Some(MessagesCommand::Replay { message }) => {
            let again: EnvelopeView =
                client.post_as(&format!("/messages/{}/replay", encode_segment(message)), &json!({})).await?;
            Ok(context.output.print_value(&again, |_| message_line(&again))?)
        }
        Some(MessagesCommand::Rules(args)) => rules::run(args, &client, context).await,
    }
}

fn message_line(one: &EnvelopeView) -> String {
    let (from, to) = (cell(&one.from_name), cell(&one.to_name));
    format!("{} {} from {from} to {to} is {}", cell(&one.id), cell(&one.r#type), cell(&one.state))
}

fn event_cells(event: &EnvelopeEventView) -> Vec<String> {
    vec![cell(&event.at), cell(&event.kind), cell(&event.detail)]
}

async fn list_messages(
    client: &ApiClient,
    context: &CommandContext,
    path: &str,
    limit: usize,
) -> anyhow::Result<()> {
    let messages: Vec<EnvelopeView> = client.list_pages::<EnvelopeList>(path, limit).await?;
    let row = |one: &EnvelopeView| {
        vec![
            cell(&one.created_at),
            cell(&one.from_name),
            cell(&one.to_name),
            cell(&one.r#type),
            cell(&one.state),
            cell(&one.attempts),
            cell(&one.id),
        ]
    };
    let rows: Vec<_> = messages.iter().map(row).collect();
    Ok(context.output.print_value(&json!({ "messages": messages }), |output| {
        if rows.is_empty() {
            "No messages.".to_owned()
        } else {
            output.format_table(&["SENT", "FROM", "TO", "TYPE", "STATE", "ATTEMPTS", "ID"], &rows)
        }
    })?)
}
