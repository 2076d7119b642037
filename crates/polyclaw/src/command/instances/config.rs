//! `polyclaw instances config`: reads and changes the config of one instance through the control plane.

use std::path::PathBuf;
use std::process::Command;

use polyclaw_api::control::configs::{
    ConfigChangeView, ConfigDiff, ConfigDraft, ConfigErrorView, ConfigValidation, ConfigView,
    ConfigWriteResult, NewConfig,
};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::failure::{CommandFailure, FailureExit};
use crate::output::{cell, visible_line};

#[derive(clap::Subcommand)]
pub enum InstancesConfigCommand {
    /// Print the config file with secrets masked.
    #[command(after_help = "Examples:
  polyclaw instances config get research")]
    Get {
        /// Name or ID of the instance.
        instance: String,
    },
    /// Change one setting. Comments and all other settings stay as they are.
    #[command(after_help = "Examples:
  polyclaw instances config set research turns.max_rounds 20
  polyclaw instances config set research agents.defaults.model null")]
    Set {
        /// Name or ID of the instance.
        instance: String,
        /// Path of the setting, such as turns.max_rounds.
        path: String,
        /// New value: a number, true, false, JSON or text. null removes the setting.
        value: String,
        /// Allow the change to set or replace a secret.
        #[arg(long)]
        allow_secret_write: bool,
    },
    /// Edit the config file in your editor ($EDITOR).
    #[command(after_help = "Examples:
  EDITOR=nano polyclaw instances config edit research")]
    Edit {
        /// Name or ID of the instance.
        instance: String,
        /// Allow the change to set or replace secrets.
        #[arg(long)]
        allow_secret_write: bool,
    },
    /// Check whether a file is a valid config for the instance. Writes nothing.
    #[command(after_help = "Examples:
  polyclaw instances config validate research draft.toml")]
    Validate {
        /// Name or ID of the instance.
        instance: String,
        /// TOML file to check.
        file: PathBuf,
    },
    /// Show what a file would change in the config. Writes nothing.
    #[command(after_help = "Examples:
  polyclaw instances config diff research draft.toml")]
    Diff {
        /// Name or ID of the instance.
        instance: String,
        /// TOML file to compare.
        file: PathBuf,
    },
}

pub async fn run(
    verb: &InstancesConfigCommand,
    client: ApiClient,
    context: &CommandContext,
) -> anyhow::Result<()> {
    let at = |instance: &str, rest: &str| format!("/instances/{}/config{rest}", encode_segment(instance));
    match verb {
        InstancesConfigCommand::Get { instance } => {
            let read = ensure_readable(client.get_as(&at(instance, "")).await?)?;
            Ok(context.output.print_value(&read, |_| visible_line(&read.toml))?)
        }
        InstancesConfigCommand::Set { instance, path, value, allow_secret_write } => {
            let current: ConfigView = client.get_as(&at(instance, "")).await?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value.as_str()));
            let mut patch = path.rsplit('.').fold(value, |inner, key| json!({ key: inner }));
            patch["etag"] = json!(current.etag);
            let changed =
                with_secret_writes(client, *allow_secret_write).patch_as(&at(instance, ""), &patch).await;
            print_change(context, changed.map_err(command_line_failure)?)
        }
        InstancesConfigCommand::Edit { instance, allow_secret_write } => {
            let read = ensure_readable(client.get_as(&at(instance, "")).await?)?;
            let (text, file) = edit_text(&read.toml)?;
            if text == read.toml {
                return Ok(context
                    .output
                    .print_value(&json!({ "outcome": "unchanged" }), |_| "No changes.".to_owned())?);
            }
            let body = NewConfig { toml: Some(text), config: None, etag: Some(read.etag) };
            let changed =
                with_secret_writes(client, *allow_secret_write).put_as(&at(instance, ""), &body).await;
            print_change(
                context,
                changed.map_err(command_line_failure).map_err(|failure| keep_draft(failure, file))?,
            )
        }
        InstancesConfigCommand::Validate { instance, file } => {
            let verdict: ConfigValidation =
                client.post_as(&at(instance, "/validate"), &config_draft(file)?).await?;
            if verdict.valid {
                return Ok(context.output.print_value(&verdict, |_| "The config is valid.".to_owned())?);
            }
            let line = |error: &ConfigErrorView| {
                format!(
                    "line {}: {}: {}",
                    cell(&error.line),
                    visible_line(&error.path),
                    visible_line(&error.message)
                )
            };
            let lines: Vec<String> = verdict.errors.iter().map(line).collect();
            Err(CommandFailure::failed("bad_config", lines.join("\n")).into())
        }
        InstancesConfigCommand::Diff { instance, file } => {
            let found: ConfigDiff = client.post_as(&at(instance, "/diff"), &config_draft(file)?).await?;
            let row = |one: &ConfigChangeView| vec![cell(&one.path), cell(&one.before), cell(&one.after)];
            let rows: Vec<_> = found.changes.iter().map(row).collect();
            Ok(context.output.print_value(&found, |output| {
                if rows.is_empty() {
                    "No changes.".to_owned()
                } else {
                    output.format_table(&["SETTING", "CURRENT", "NEW"], &rows)
                }
            })?)
        }
    }
}

/// Rejects a config that cannot be parsed. Shown as empty, it would be overwritten on save.
fn ensure_readable(read: ConfigView) -> Result<ConfigView, CommandFailure> {
    match &read.error {
        Some(error) => Err(CommandFailure::failed("bad_config", error.as_str())
            .hint("fix config.toml in the instance's home")),
        None => Ok(read),
    }
}

fn with_secret_writes(client: ApiClient, secrets: bool) -> ApiClient {
    if secrets { client.with_header("X-Allow-Secret-Write", "true") } else { client }
}

/// Replaces hints that are meant for HTTP clients with hints for the command line.
fn command_line_failure(mut failure: CommandFailure) -> CommandFailure {
    match failure.code.as_str() {
        "secret_write" => failure.hint("pass --allow-secret-write to change secrets"),
        "etag_stale" => {
            failure.exit = FailureExit::Conflict;
            failure.hint("the config was changed meanwhile: read it again and retry")
        }
        _ => failure,
    }
}

/// Keeps the user's draft on disk when the change was rejected, and names the file in the hint.
fn keep_draft(failure: CommandFailure, file: NamedTempFile) -> CommandFailure {
    let Ok((_, path)) = file.keep() else { return failure };
    let so_far = failure.hint.as_ref().map(|hint| format!("{hint}; ")).unwrap_or_default();
    let hint = format!("{so_far}your text is saved in {}", path.display());
    failure.hint(hint)
}

fn print_change(context: &CommandContext, changed: ConfigWriteResult) -> anyhow::Result<()> {
    Ok(context.output.print_value(&changed, |_| match changed.outcome.as_str() {
        "saved" => "Saved; the instance starts with it.".to_owned(),
        "reloaded" => "Saved; the instance uses it now.".to_owned(),
        _ => format!(
            "Saved; these sections take effect at the next start: {}",
            changed.restart_required.join(", ")
        ),
    })?)
}

fn config_draft(file: &PathBuf) -> Result<ConfigDraft, CommandFailure> {
    let toml = std::fs::read_to_string(file)
        .map_err(|error| CommandFailure::usage(format!("{}: {error}", file.display())))?;
    Ok(ConfigDraft { toml: Some(toml), config: None, patch: None })
}

/// Opens the text in the user's editor. Returns the edited text and its temporary file, which is deleted when
/// dropped.
fn edit_text(text: &str) -> Result<(String, NamedTempFile), CommandFailure> {
    let failed = |error: std::io::Error| CommandFailure::failed("editor", error.to_string());
    let editor = std::env::var("EDITOR").ok().filter(|editor| !editor.is_empty());
    let editor =
        editor.ok_or_else(|| CommandFailure::usage("EDITOR is not set").hint("for example: EDITOR=nano"))?;
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().map_err(failed)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(failed)?;
    let ended =
        Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("editor").arg(file.path()).status();
    if !ended.map_err(failed)?.success() {
        return Err(CommandFailure::failed("editor", "the editor ended with an error; nothing was written"));
    }
    let text = std::fs::read_to_string(file.path()).map_err(failed)?;
    Ok((text, file))
}
