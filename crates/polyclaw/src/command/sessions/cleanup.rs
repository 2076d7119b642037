//! `polyclaw sessions cleanup`: removes unused sessions.

use std::io::{IsTerminal, Write, stderr, stdin};

use polyclaw_api::cleanup::{CleanupRequest, CleanupResult, UnusedSessionView};

use crate::client::ApiClient;
use crate::failure::{CommandFailure, FailureExit};
use crate::output::{CliOutput, cell};

#[derive(clap::Args)]
pub struct Args {
    /// Show what would be removed without removing it.
    #[arg(long)]
    dry_run: bool,
    /// Remove without asking.
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
}

pub async fn run(client: &ApiClient, output: CliOutput, args: &Args) -> anyhow::Result<()> {
    if !args.dry_run && !args.yes {
        let found: CleanupResult =
            client.post_as("/sessions/cleanup", &CleanupRequest { dry_run: true }).await?;
        let count = found.unused.len();
        if count > 0 && !is_confirmed(count)? {
            return Ok(output.print_value(&found, |_| "Nothing was changed.".to_owned())?);
        }
    }
    let body: CleanupResult =
        client.post_as("/sessions/cleanup", &CleanupRequest { dry_run: args.dry_run }).await?;
    Ok(output.print_value(&body, |output| cleanup_summary(&body, *output, args.dry_run))?)
}

fn cleanup_summary(body: &CleanupResult, output: CliOutput, is_dry: bool) -> String {
    let row =
        |one: &UnusedSessionView| vec![cell(&one.agent_id), cell(&one.updated_at), cell(&one.session_key)];
    let rows: Vec<_> = body.unused.iter().map(row).collect();
    let mut done = if is_dry {
        format!("{} would be removed. Nothing was changed.", rows.len())
    } else {
        format!("{} removed; their transcripts are in archive/.", body.removed)
    };
    let dropped = body.dropped_files.len();
    if dropped > 0 {
        done += &format!(" {dropped} older archive file(s) exceed session.maintenance.archive_budget_mb.");
    }
    if rows.is_empty() {
        "No unused sessions.".to_owned()
    } else {
        format!("{}\n\n{done}", output.format_table(&["AGENT", "LAST USED", "SESSION"], &rows))
    }
}

/// Asks for confirmation. Fails without a terminal, because nobody can answer there.
fn is_confirmed(count: usize) -> anyhow::Result<bool> {
    if !stdin().is_terminal() {
        let message = format!("{count} session(s) would be removed, but confirmation needs a terminal");
        let hint = "--yes removes them; --dry-run lists them";
        return Err(CommandFailure::new(FailureExit::Usage, "not_confirmed", message).hint(hint).into());
    }
    write!(stderr(), "Remove {count} session(s)? Their transcripts are archived first. [y/N] ")?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
