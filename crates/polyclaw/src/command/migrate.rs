//! `polyclaw migrate`: imports the data of another program.

use std::path::PathBuf;

use polyclaw_control::ControlCaller;
use polyclaw_control::import::ImportRequest;
use polyclaw_server::control::import_result;
use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::client::{ApiClient, UNREACHABLE_CODE};
use crate::control;
use crate::failure::{CommandFailure, FailureExit};
use crate::output::{cell_text, visible_line};
use crate::progress::ProgressDisplay;

/// Copying large workspaces takes time.
const IMPORT_TIMEOUT_SECONDS: u64 = 3600;
/// Progress label shown during the import.
const IMPORT_PROGRESS_LABEL: &str = "importing";

/// Import the agents, channels, schedules, files and conversations of another program.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw migrate from-openclaw ~/.openclaw --dry-run
  polyclaw migrate from-openclaw ~/.openclaw --with-secrets
  polyclaw migrate from-openclaw ./openclaw.json --name work

The import creates a new, stopped instance, completely or not at all. The source is not changed, and nothing is
overwritten. Every key that has no effect in Polyclaw is listed.")]
pub struct Args {
    #[command(subcommand)]
    verb: MigrateCommand,
}

#[derive(clap::Subcommand)]
enum MigrateCommand {
    /// Import from an OpenClaw gateway. Uses the running control plane, or none if none runs.
    #[command(after_help = "Examples:
  polyclaw migrate from-openclaw ~/.openclaw --dry-run
  polyclaw migrate from-openclaw ~/.openclaw --with-secrets
  polyclaw migrate from-openclaw ./openclaw.json --name work")]
    FromOpenclaw {
        /// Path of openclaw.json, or of its folder.
        path: PathBuf,
        /// Report what would be imported without changing anything.
        #[arg(long)]
        dry_run: bool,
        /// Move plain-text keys and tokens to the instance's secret store.
        #[arg(long)]
        with_secrets: bool,
        /// Also copy workspaces that are outside the folder of the config.
        #[arg(long)]
        allow_outside: bool,
        /// Name of the new instance. Defaults to the name of the folder.
        #[arg(long)]
        name: Option<String>,
        /// Port to listen on. Defaults to the first free port from 18801.
        #[arg(long, value_name = "PORT")]
        port: Option<u16>,
    },
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let MigrateCommand::FromOpenclaw { path, dry_run, with_secrets, allow_outside, name, port } = &args.verb;
    let order = ImportRequest {
        path: std::path::absolute(path)?,
        name: name.clone(),
        port: *port,
        dry_run: *dry_run,
        with_secrets: *with_secrets,
        allow_outside: *allow_outside,
    };
    let body = json!({
        "path": order.path, "dry_run": dry_run, "with_secrets": with_secrets,
        "allow_outside": allow_outside, "name": name, "port": port,
    });
    let runs =
        context.global.url().is_some() || control::ControlPlaneNotes::for_home(&context.home).url().is_some();
    let progress = ProgressDisplay::new(context.output.json);
    let asked = if runs {
        let control = ApiClient::for_control_plane(context)?;
        progress
            .show_while_running(
                IMPORT_PROGRESS_LABEL,
                control.post_with_extra_time("/import/openclaw", &body, IMPORT_TIMEOUT_SECONDS),
            )
            .await
    } else {
        Err(CommandFailure::new(
            FailureExit::Unavailable,
            UNREACHABLE_CODE,
            "no control plane runs on this home",
        ))
    };
    let answer = match asked {
        Err(failure) if failure.code == UNREACHABLE_CODE && context.global.url().is_none() => {
            progress.show_while_running(IMPORT_PROGRESS_LABEL, import_offline(context, order)).await?
        }
        answered => answered?,
    };
    Ok(context.output.print_value(&answer, |_| report_text(&answer, *dry_run))?)
}

/// Imports without a control plane. None runs, so nothing else changes the home at the same time.
async fn import_offline(context: &CommandContext, order: ImportRequest) -> anyhow::Result<Value> {
    crate::home::make_private(&context.home.control_dir())?;
    let control = control::open(&context.home)?;
    control.recover().await.map_err(CommandFailure::from)?;
    let outcome =
        control.import_home(&ControlCaller::operator(), order).await.map_err(CommandFailure::from)?;
    Ok(serde_json::to_value(import_result(outcome))?)
}

fn report_text(answer: &Value, dry_run: bool) -> String {
    let report = &answer["report"];
    let count = |key: &str| {
        report[key].as_array().map_or_else(|| cell_text(&report[key]), |list| list.len().to_string())
    };
    let head = match (answer["already"] == true, dry_run) {
        (true, _) => "Already imported; nothing was changed",
        (false, true) => "Dry run: would create the instance",
        (false, false) => "Created the instance",
    };
    let mut lines = vec![format!("{head}: {}.", visible_line(&cell_text(&report["name"])))];
    for key in
        ["agents", "providers", "channels", "bindings", "schedules", "workspaces", "sessions", "messages"]
    {
        lines.push(format!("  {key:<11} {}", count(key)));
    }
    for (key, title) in [
        ("folders", "Copied folders:"),
        ("secrets", "Stored secrets:"),
        ("left", "Secrets not imported:"),
        ("changed", "Different in Polyclaw:"),
        ("ignored", "No effect in Polyclaw:"),
    ] {
        lines.extend(report_section(&report[key], title));
    }
    if let (false, Some(name)) = (dry_run, answer["instance"]["name"].as_str()) {
        lines.push(format!("`polyclaw instances start {name}` starts it."));
    }
    lines.join("\n")
}

fn report_section(list: &Value, title: &str) -> Vec<String> {
    let line = |note: &Value| match note["path"].as_str() {
        Some(path) => format!("  {}: {}", visible_line(path), visible_line(&cell_text(&note["reason"]))),
        None => format!("  {}", visible_line(&cell_text(note))),
    };
    let lines: Vec<String> = list.as_array().into_iter().flatten().map(line).collect();
    if lines.is_empty() { lines } else { [vec![title.to_owned()], lines].concat() }
}
