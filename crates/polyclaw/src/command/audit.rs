//! `polyclaw audit`: the control plane's audit log and the check of its hash chain.

use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::client::ApiClient;
use crate::control;
use crate::failure::{CommandFailure, FailureExit};
use crate::output::{cell_text, visible_line};

/// List the changes made through the control plane, and verify that the log is intact.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw audit list
  polyclaw audit verify

Each entry holds the hash of the one before it. `verify` counts them all again and names the first that does not fit,
and what is missing at the end by a row of the registry and by the file cp/audit.head. Who can write both can make
a record that fits: write its `head` down on another machine now and then, and that shows too.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<AuditCommand>,
}

#[derive(clap::Subcommand)]
enum AuditCommand {
    /// List entries, newest first.
    #[command(after_help = "Examples:
  polyclaw audit list
  polyclaw audit list --limit 500 --json")]
    List {
        /// Maximum number of entries to list.
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Recompute and verify the hash chain. Works without a control plane.
    #[command(after_help = "Examples:
  polyclaw audit verify
  polyclaw audit verify --json")]
    Verify,
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::for_control_plane(context);
    match &args.verb {
        Some(AuditCommand::Verify) => verify_chain(client, context).await,
        Some(AuditCommand::List { limit }) => list_entries(&client?, context, *limit).await,
        None => list_entries(&client?, context, 50).await,
    }
}

async fn list_entries(client: &ApiClient, context: &CommandContext, limit: usize) -> anyhow::Result<()> {
    let entries = client.list_items("/audit", "entries", limit).await?;
    let row = |one: &Value| {
        ["seq", "at", "who", "action", "detail"].map(|name| visible_line(&cell_text(&one[name]))).to_vec()
    };
    let rows: Vec<_> = entries.iter().map(row).collect();
    Ok(context.output.print_value(&json!({ "entries": entries }), |output| match rows.is_empty() {
        true => "Nothing was changed yet.".to_owned(),
        false => output.format_table(&["#", "WHEN", "WHO", "WHAT", "OF"], &rows),
    })?)
}

async fn verify_chain(
    client: Result<ApiClient, CommandFailure>,
    context: &CommandContext,
) -> anyhow::Result<()> {
    let answered = match client {
        Ok(client) => client.get("/audit/verify").await,
        Err(failure) => Err(failure),
    };
    let verdict = match answered {
        Err(failure) if failure.exit == FailureExit::Unavailable => verify_offline(context).await?,
        answered => answered?,
    };
    if verdict["intact"] == true {
        let text = format!(
            "The record is whole: {} entries, head {}.",
            verdict["entries"],
            cell_text(&verdict["head"])
        );
        return Ok(context.output.print_value(&verdict, |_| text)?);
    }
    let message = format!("entry {} does not fit: {}", verdict["broken_at"], cell_text(&verdict["reason"]));
    let mut failure = CommandFailure::failed("audit_broken", message)
        .hint("somebody changed the registry behind the control plane's back: restore it from a copy");
    failure.details = Some(Box::new(verdict));
    Err(failure.into())
}

/// Verifies the log directly in the registry, for when no control plane runs.
async fn verify_offline(context: &CommandContext) -> anyhow::Result<Value> {
    let control = control::open(&context.home)?;
    let (chain, broken) = control.verify_audit().await.map_err(CommandFailure::from)?;
    Ok(json!({
        "intact": broken.is_none(),
        "entries": chain.len(),
        "head": chain.head_hash(),
        "broken_at": broken.as_ref().map(|broken| broken.seq),
        "reason": broken.map(|broken| broken.reason),
    }))
}
