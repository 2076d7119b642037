//! `polyclaw audit`: the control plane's audit log and the check of its hash chain.

use polyclaw_api::control::audit::{AuditChainView, AuditEntryList, AuditEntryView};
use serde_json::json;

use crate::cli::CommandContext;
use crate::client::ApiClient;
use crate::control;
use crate::failure::{CommandFailure, FailureExit};
use crate::output::{cell, visible_line};

/// List the changes made through the control plane, and verify that the log is intact.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw audit list
  polyclaw audit verify

Each entry holds the hash of the previous one. `verify` recomputes all hashes and reports the first entry that does not
match. A row of the registry and the file cp/audit.head reveal entries that are missing at the end. Anyone who can write both
can forge a consistent log: copy its `head` to another machine now and then to detect that too.")]
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
    let entries: Vec<AuditEntryView> = client.list_pages::<AuditEntryList>("/audit", limit).await?;
    let row = |one: &AuditEntryView| {
        vec![cell(&one.seq), cell(&one.at), cell(&one.who), cell(&one.action), cell(&one.detail)]
    };
    let rows: Vec<_> = entries.iter().map(row).collect();
    Ok(context.output.print_value(&json!({ "entries": entries }), |output| {
        if rows.is_empty() {
            "The audit log is empty.".to_owned()
        } else {
            output.format_table(&["SEQ", "TIME", "ACTOR", "ACTION", "DETAIL"], &rows)
        }
    })?)
}

async fn verify_chain(
    client: Result<ApiClient, CommandFailure>,
    context: &CommandContext,
) -> anyhow::Result<()> {
    let answered = match client {
        Ok(client) => client.get_as("/audit/verify").await,
        Err(failure) => Err(failure),
    };
    let verdict = match answered {
        Err(failure) if failure.exit == FailureExit::Unavailable => verify_offline(context).await?,
        answered => answered?,
    };
    if verdict.intact {
        let text = format!(
            "The audit log is intact: {} entries, head {}.",
            verdict.entries,
            visible_line(&verdict.head)
        );
        return Ok(context.output.print_value(&verdict, |_| text)?);
    }
    let message = format!("entry {} is invalid: {}", cell(&verdict.broken_at), cell(&verdict.reason));
    let mut failure = CommandFailure::failed("audit_broken", message)
        .hint("the registry was modified outside the control plane: restore it from a backup");
    failure.details = Some(Box::new(serde_json::to_value(verdict)?));
    Err(failure.into())
}

/// Verifies the log directly in the registry, for when no control plane runs.
async fn verify_offline(context: &CommandContext) -> anyhow::Result<AuditChainView> {
    let control = control::open(&context.home)?;
    let (chain, broken) = control.verify_audit().await.map_err(CommandFailure::from)?;
    Ok(AuditChainView {
        intact: broken.is_none(),
        entries: chain.len(),
        head: chain.head_hash().to_owned(),
        broken_at: broken.as_ref().map(|broken| broken.seq),
        reason: broken.map(|broken| broken.reason.to_owned()),
    })
}
