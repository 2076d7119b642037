//! `polyclaw messages rules`: the rules for which instance may send what to which.

use polyclaw_api::control::rules::{RuleList, RuleView};
use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::output::{cell, visible_line};

const MAX_LISTED_RULES: usize = 10_000;

/// Manage the rules for messages between instances: list, allow, set, remove.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw messages rules list
  polyclaw messages rules allow main research 'task.*'
  polyclaw messages rules allow research main task.result --ttl-secs 86400
  polyclaw messages rules remove 01k5…

Without a rule, no instance may write to another. Answers need their own rule: a task is answered with `task.status` and
`task.result`, any other message with `response`. A control plane must run: `polyclaw up` or `polyclaw control`.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<MessagesRulesCommand>,
}

#[derive(clap::Subcommand)]
enum MessagesRulesCommand {
    /// List all rules.
    #[command(after_help = "Examples:
  polyclaw messages rules list")]
    List,
    /// Allow one instance to send messages of a type to another.
    #[command(after_help = "Examples:
  polyclaw messages rules allow main research 'task.*'
  polyclaw messages rules allow research main task.result --ttl-secs 86400")]
    Allow {
        /// Sending instance, by name or ID.
        from: String,
        /// Receiving instance, by name or ID.
        to: String,
        /// Message type, or a prefix with a wildcard: `task.*`.
        r#type: String,
        /// Maximum number of delivery attempts.
        #[arg(long, value_name = "N")]
        max_retries: Option<u32>,
        /// Seconds that a message may wait for delivery.
        #[arg(long, value_name = "SECONDS")]
        ttl_secs: Option<u32>,
        /// Start the receiving instance for a message if it is stopped.
        #[arg(long)]
        auto_start: bool,
    },
    /// Change a rule.
    #[command(after_help = "Examples:
  polyclaw messages rules set 01k5… --ttl-secs 86400
  polyclaw messages rules set 01k5… --auto-start true")]
    Set {
        /// ID of the rule.
        rule: String,
        /// Message type, or a prefix with a wildcard: `task.*`.
        #[arg(long, value_name = "TYPE")]
        r#type: Option<String>,
        /// Maximum number of delivery attempts.
        #[arg(long, value_name = "N")]
        max_retries: Option<u32>,
        /// Seconds that a message may wait for delivery.
        #[arg(long, value_name = "SECONDS")]
        ttl_secs: Option<u32>,
        /// Whether a message starts the receiving instance if it is stopped.
        #[arg(long, value_name = "BOOL")]
        auto_start: Option<bool>,
    },
    /// Remove a rule.
    #[command(after_help = "Examples:
  polyclaw messages rules remove 01k5…")]
    Remove {
        /// ID of the rule.
        rule: String,
    },
}

pub async fn run(args: &Args, client: &ApiClient, context: &CommandContext) -> anyhow::Result<()> {
    match &args.verb {
        None | Some(MessagesRulesCommand::List) => list_rules(client, context).await,
        Some(MessagesRulesCommand::Allow { from, to, r#type, max_retries, ttl_secs, auto_start }) => {
            let body = json!({
                "from": from, "to": to, "type": r#type, "max_retries": max_retries, "ttl_secs": ttl_secs,
                "auto_start": auto_start,
            });
            let rule: RuleView = client.post_as("/routing-rules", &body).await?;
            Ok(context.output.print_value(&rule, |_| {
                format!(
                    "{} may send {} to {} ({})",
                    visible_line(from),
                    visible_line(r#type),
                    visible_line(to),
                    visible_line(&rule.id)
                )
            })?)
        }
        Some(MessagesRulesCommand::Set { rule, r#type, max_retries, ttl_secs, auto_start }) => {
            let body = json!({
                "type": r#type, "max_retries": max_retries, "ttl_secs": ttl_secs, "auto_start": auto_start,
            });
            let changed: RuleView =
                client.patch_as(&format!("/routing-rules/{}", encode_segment(rule)), &body).await?;
            Ok(context.output.print_value(&changed, |_| format!("Changed rule {}.", visible_line(rule)))?)
        }
        Some(MessagesRulesCommand::Remove { rule }) => {
            let answer: Value = client.delete_as(&format!("/routing-rules/{}", encode_segment(rule))).await?;
            Ok(context.output.print_value(&answer, |_| format!("Removed rule {}.", visible_line(rule)))?)
        }
    }
}

async fn list_rules(client: &ApiClient, context: &CommandContext) -> anyhow::Result<()> {
    let rules: Vec<RuleView> = client.list_pages::<RuleList>("/routing-rules", MAX_LISTED_RULES).await?;
    // Shows both instances by name, as `allow` takes them.
    let row = |rule: &RuleView| {
        vec![
            cell(&rule.from_name),
            cell(&rule.to_name),
            cell(&rule.r#type),
            cell(&rule.max_retries),
            cell(&rule.ttl_secs),
            cell(&rule.auto_start),
            cell(&rule.id),
        ]
    };
    let rows: Vec<_> = rules.iter().map(row).collect();
    Ok(context.output.print_value(&json!({ "rules": rules }), |output| {
        if rows.is_empty() {
            "No rules: no instance may write to another.".to_owned()
        } else {
            output.format_table(&["FROM", "TO", "TYPE", "RETRIES", "TTL SECS", "AUTO START", "ID"], &rows)
        }
    })?)
}
