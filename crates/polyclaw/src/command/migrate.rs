//! `polyclaw migrate`: imports the data of another program.

use std::path::PathBuf;

use polyclaw_api::control::imports::{ImportNote, ImportResult};
use polyclaw_control::ControlCaller;
use polyclaw_control::import::ImportRequest;
use polyclaw_server::control::import_result;
use serde_json::json;

use crate::cli::CommandContext;
use crate::client::{ApiClient, UNREACHABLE_CODE};
use crate::control;
use crate::failure::{CommandFailure, FailureExit};
use crate::output::visible_line;
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
                control.post_as_with_extra_time("/import/openclaw", &body, IMPORT_TIMEOUT_SECONDS),
            )
            .await
    } else {
        Err(CommandFailure::new(
            FailureExit::Unavailable,
            UNREACHABLE_CODE,
            "no control plane runs on this home",
        ))
    };
    let answer: ImportResult = match asked {
        Err(failure) if failure.code == UNREACHABLE_CODE && context.global.url().is_none() => {
            progress.show_while_running(IMPORT_PROGRESS_LABEL, import_offline(context, order)).await?
        }
        answered => answered?,
    };
    Ok(context.output.print_value(&answer, |_| report_text(&answer, *dry_run))?)
}

/// Imports without a control plane. None runs, so nothing else changes the home at the same time.
async fn import_offline(context: &CommandContext, order: ImportRequest) -> anyhow::Result<ImportResult> {
    crate::home::make_private(&context.home.control_dir())?;
    let control = control::open(&context.home)?;
    control.recover().await.map_err(CommandFailure::from)?;
    let outcome =
        control.import_home(&ControlCaller::operator(), order).await.map_err(CommandFailure::from)?;
    Ok(import_result(outcome))
}

fn report_text(answer: &ImportResult, dry_run: bool) -> String {
    let report = &answer.report;
    let head = match (answer.already, dry_run) {
        (true, _) => "Already imported; nothing was changed",
        (false, true) => "Dry run: would create the instance",
        (false, false) => "Created the instance",
    };
    let mut lines = vec![format!("{head}: {}.", visible_line(&report.name))];
    for (key, count) in [
        ("agents", report.agents.len()),
        ("providers", report.providers.len()),
        ("channels", report.channels.len()),
        ("bindings", report.bindings),
        ("schedules", report.schedules),
        ("workspaces", report.workspaces),
        ("sessions", report.sessions),
        ("messages", report.messages),
    ] {
        lines.push(format!("  {key:<11} {count}"));
    }
    let plain = |list: &[String]| list.iter().map(|line| visible_line(line)).collect();
    let notes = |list: &[ImportNote]| {
        list.iter()
            .map(|note| format!("{}: {}", visible_line(&note.path), visible_line(&note.reason)))
            .collect()
    };
    let sections: [(&str, Vec<String>); 5] = [
        ("Copied folders:", plain(&report.folders)),
        ("Stored secrets:", plain(&report.secrets)),
        ("Secrets not imported:", notes(&report.left)),
        ("Different in Polyclaw:", notes(&report.changed)),
        ("No effect in Polyclaw:", notes(&report.ignored)),
    ];
    for (title, list) in sections.into_iter().filter(|(_, list)| !list.is_empty()) {
        lines.push(title.to_owned());
        lines.extend(list.iter().map(|line| format!("  {line}")));
    }
    if let (false, Some(instance)) = (dry_run, &answer.instance) {
        lines.push(format!("`polyclaw instances start {}` starts it.", instance.name));
    }
    lines.join("\n")
}
