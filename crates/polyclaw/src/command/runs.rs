//! `polyclaw runs`: the runs of sub-agents, and results that are held for you.

use polyclaw_api::delegations::{DelegationList, DelegationView};
use polyclaw_api::runs::{RunList, RunView};
use serde_json::json;

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::failure::{CommandFailure, FailureExit};
use crate::output::{cell, visible_line};

/// Manage work that agents gave to sub-agents and to each other: list, held, show, dismiss, pairs.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw runs list agent:main:main
  polyclaw runs held
  polyclaw runs show 01j…
  polyclaw runs dismiss 01j… 01k…
  polyclaw runs dismiss --all
  polyclaw runs pairs

When a run ends, its result is announced to the session that started it. If that session has had too many automatic turns,
the announce is `held` until you write there. Dismissing a held run discards its announce without an answer.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<RunsCommand>,
}

#[derive(clap::Subcommand)]
enum RunsCommand {
    /// List the runs that one session started, newest first.
    #[command(after_help = "Examples:
  polyclaw runs list agent:main:main")]
    List {
        /// Session key, as `polyclaw sessions` lists it.
        key: Option<String>,
        /// Maximum number of runs to list.
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
    },
    /// List held runs: their results wait until you write to the session.
    #[command(after_help = "Examples:
  polyclaw runs held")]
    Held,
    /// Show one run with its result.
    #[command(after_help = "Examples:
  polyclaw runs show 01j…")]
    Show {
        /// ID that `polyclaw runs` lists.
        id: String,
    },
    /// Dismiss held runs without answering.
    #[command(after_help = "Examples:
  polyclaw runs dismiss 01j… 01k…
  polyclaw runs dismiss --all")]
    Dismiss {
        /// IDs that `polyclaw runs held` lists.
        #[arg(value_name = "ID", required_unless_present = "all")]
        ids: Vec<String>,
        /// Dismiss all held runs.
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
    /// Show delegation statistics for each pair of agents: counts, outcomes, durations.
    #[command(after_help = "Examples:
  polyclaw runs pairs")]
    Pairs,
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::new(context)?;
    match &args.verb {
        None | Some(RunsCommand::Held) => {
            list_runs(&client, context, HELD_RUNS_PATH.to_owned(), NO_HELD_RUNS).await
        }
        Some(RunsCommand::List { key, limit }) => {
            let key = key.as_ref().ok_or_else(|| {
                CommandFailure::usage("missing session key: polyclaw runs list <KEY>")
                    .hint("`polyclaw sessions tree` shows the sessions that started others")
            })?;
            let path = format!("/runs?owner={}&limit={limit}", encode_segment(key));
            list_runs(&client, context, path, "This session has not started any runs.").await
        }
        Some(RunsCommand::Show { id }) => show_run(&client, context, id).await,
        Some(RunsCommand::Dismiss { ids, all }) => dismiss_runs(&client, context, ids, *all).await,
        Some(RunsCommand::Pairs) => show_delegations(&client, context).await,
    }
}

const HELD_RUNS_PATH: &str = "/runs?held=true&limit=1000";

/// Dismisses the named runs, or all held ones.
async fn dismiss_runs(
    client: &ApiClient,
    context: &CommandContext,
    ids: &[String],
    all: bool,
) -> anyhow::Result<()> {
    if let [id] = ids {
        let run = dismiss_one(client, id).await?;
        return Ok(context.output.print_value(&run, |_| "Run dismissed.".to_owned())?);
    }
    let mut dismissed = Vec::new();
    let mut failed = dismiss_each(client, ids, &mut dismissed).await.err();
    while all && failed.is_none() {
        let held: RunList = client.get_as(HELD_RUNS_PATH).await?;
        let next: Vec<String> = held.runs.iter().map(|run| run.run_id.to_string()).collect();
        let before = dismissed.len();
        failed = dismiss_each(client, &next, &mut dismissed).await.err();
        if dismissed.len() == before {
            break;
        }
    }
    if let Some(failure) = failed {
        let message = format!("{}; {} were dismissed before that", failure.message, dismissed.len());
        return Err(CommandFailure { message, ..failure }.into());
    }
    let body = json!({ "runs": dismissed });
    Ok(context.output.print_value(&body, |_| format!("{} dismissed.", dismissed.len()))?)
}

/// Dismisses each run. Skips a run that is no longer held.
async fn dismiss_each(
    client: &ApiClient,
    ids: &[String],
    dismissed: &mut Vec<RunView>,
) -> Result<(), CommandFailure> {
    for id in ids {
        match dismiss_one(client, id).await {
            Ok(run) => dismissed.push(run),
            Err(failure) if failure.exit == FailureExit::Conflict => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

async fn dismiss_one(client: &ApiClient, id: &str) -> Result<RunView, CommandFailure> {
    client.post_as(&format!("/runs/{}/dismiss", encode_segment(id)), &json!({})).await
}

/// Text for an empty list. `polyclaw runs` alone prints it too, so it says where other runs are listed.
const NO_HELD_RUNS: &str = "No run is held. `polyclaw runs list <session>` lists the runs of a session, active or ended; \
`polyclaw sessions` lists the sessions.";

async fn list_runs(
    client: &ApiClient,
    context: &CommandContext,
    path: String,
    none: &str,
) -> anyhow::Result<()> {
    let answer: RunList = client.get_as(&path).await?;
    let row = |run: &RunView| {
        vec![
            cell(&run.run_id),
            cell(&run.agent_id),
            cell(&run.status),
            cell(&run.held),
            visible_line(&run.label),
            cell(&run.created_at),
        ]
    };
    let rows: Vec<_> = answer.runs.iter().map(row).collect();
    Ok(context.output.print_value(&answer, |output| {
        if rows.is_empty() {
            none.to_owned()
        } else {
            output.format_table(&["ID", "AGENT", "STATUS", "HELD", "LABEL", "STARTED"], &rows)
        }
    })?)
}

async fn show_run(client: &ApiClient, context: &CommandContext, id: &str) -> anyhow::Result<()> {
    let run: RunView = client.get_as(&format!("/runs/{}", encode_segment(id))).await?;
    Ok(context.output.print_value(&run, |_| {
        let fields = [
            ("run_id", cell(&run.run_id)),
            ("kind", cell(&run.kind)),
            ("caller_agent_id", cell(&run.caller_agent_id)),
            ("agent_id", cell(&run.agent_id)),
            ("session_key", cell(&run.session_key)),
            ("owner_session_key", cell(&run.owner_session_key)),
            ("trace_id", cell(&run.trace_id)),
            ("status", cell(&run.status)),
            ("held", cell(&run.held)),
            ("error_code", cell(&run.error_code)),
            ("tokens", cell(&run.tokens)),
            ("created_at", cell(&run.created_at)),
            ("ended_at", cell(&run.ended_at)),
            ("task", cell(&run.task)),
            ("result", cell(&run.result)),
        ];
        fields.map(|(name, value)| format!("{name} {value}")).join("\n")
    })?)
}

async fn show_delegations(client: &ApiClient, context: &CommandContext) -> anyhow::Result<()> {
    let answer: DelegationList = client.get_as("/delegations").await?;
    let row = |one: &DelegationView| {
        vec![
            cell(&one.caller),
            cell(&one.target),
            cell(&one.active),
            cell(&one.completed),
            cell(&one.timeout),
            cell(&one.error),
            cell(&one.cancelled),
            cell(&one.rejected),
            cell(&one.p50_ms),
            cell(&one.p95_ms),
        ]
    };
    let rows: Vec<_> = answer.delegations.iter().map(row).collect();
    let head = [
        "CALLER",
        "TARGET",
        "ACTIVE",
        "DONE",
        "TIMEOUT",
        "ERROR",
        "CANCELLED",
        "REJECTED",
        "P50_MS",
        "P95_MS",
    ];
    Ok(context.output.print_value(&answer, |output| {
        if rows.is_empty() {
            "No delegations since the instance started.".to_owned()
        } else {
            output.format_table(&head, &rows)
        }
    })?)
}
