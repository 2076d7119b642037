//! Edits the config file of this home. Comments are kept and an invalid config is not written. A running daemon
//! applies the change immediately, or the old config is restored.

use std::fs;
use std::time::{Duration, Instant};

use polyclaw_api::config::ConfigReloadResult;
use polyclaw_control::lock::HeldLock;
use polyclaw_control::{Error, InstancePaths, file};
use serde_json::json;

use crate::cli::CommandContext;
use crate::client::{ApiClient, UNREACHABLE_CODE};
use crate::failure::{CommandFailure, FailureExit};
use crate::home::access_failure;

/// How long to wait for another process to release the home's lock.
const HOME_LOCK_TIMEOUT: Duration = Duration::from_secs(3);
const HOME_LOCK_RETRY_AFTER: Duration = Duration::from_millis(50);

pub async fn edit_config(
    context: &CommandContext,
    client: &ApiClient,
    change: impl Fn(&str) -> Result<String, CommandFailure>,
) -> anyhow::Result<()> {
    if context.global.url().is_some() {
        return Err(CommandFailure::usage("cannot change the config of a remote instance")
            .hint("`polyclaw instances config edit` changes the config of any instance of a control plane")
            .into());
    }
    let _alone = lock_home(context).await?;
    let before = read_config(context)?;
    let after = change(&before)?;
    replace_config(context, &before, &after)?;
    if !context.home.is_daemon_running() {
        let body = json!({ "outcome": "saved" });
        return Ok(context
            .output
            .print_value(&body, |_| "Saved; takes effect at the next start.".to_owned())?);
    }
    let reloaded: Result<ConfigReloadResult, _> = client.post_as("/config/reload", &json!({})).await;
    let reloaded = reloaded.map_err(|failure| restore_config(context, (&before, &after), failure))?;
    print_reloaded(context, &reloaded)
}

/// Writes the new config if it is valid and the file has not changed since. People who edit by hand take no lock.
fn replace_config(context: &CommandContext, before: &str, after: &str) -> Result<(), CommandFailure> {
    let checked = context.home.load_unresolved(after);
    checked.map_err(|errors| {
        CommandFailure::failed("bad_config", errors.to_string()).hint("nothing was written")
    })?;
    if read_config(context)? != before {
        return Err(CommandFailure::new(
            FailureExit::Conflict,
            "etag_stale",
            "the config was changed meanwhile",
        )
        .hint("nothing was written; review the change and retry"));
    }
    write_config(context, after)
}

fn print_reloaded(context: &CommandContext, reloaded: &ConfigReloadResult) -> anyhow::Result<()> {
    let sections = &reloaded.restart_required;
    let value = json!({ "outcome": "reloaded", "restart_required": sections });
    Ok(context.output.print_value(&value, |_| {
        if sections.is_empty() {
            "Saved, and in effect now.".to_owned()
        } else {
            format!("Saved; a restart is needed for {}.", sections.join(", "))
        }
    })?)
}

/// Restores the old config after a failed reload, unless no daemon runs. A file that was edited again since is left
/// alone.
fn restore_config(
    context: &CommandContext,
    (before, after): (&str, &str),
    failure: CommandFailure,
) -> CommandFailure {
    if failure.code == UNREACHABLE_CODE {
        return failure.hint("the config is saved and takes effect at the next start");
    }
    let undone = read_config(context)
        .and_then(|now| if now == after { write_config(context, before) } else { Ok(()) });
    undone.err().unwrap_or(failure)
}

/// Locks the home. The control plane changes the config under the same lock.
async fn lock_home(context: &CommandContext) -> Result<HeldLock, CommandFailure> {
    let (place, began) = (InstancePaths::from_folder(context.home.path().to_owned()), Instant::now());
    loop {
        if let Some(held) = place.try_lock()? {
            return Ok(held);
        }
        if began.elapsed() > HOME_LOCK_TIMEOUT {
            return Err(Error::Busy(context.home.path().display().to_string()).into());
        }
        tokio::time::sleep(HOME_LOCK_RETRY_AFTER).await;
    }
}

fn read_config(context: &CommandContext) -> Result<String, CommandFailure> {
    let path = context.home.config_file();
    fs::read_to_string(&path).map_err(|error| access_failure(&path, &error))
}

fn write_config(context: &CommandContext, text: &str) -> Result<(), CommandFailure> {
    let path = context.home.config_file();
    // The previous version is kept as a backup next to the file.
    let before = InstancePaths::from_folder(context.home.path().to_owned()).config_backup();
    file::replace_with_backup(&path, text.as_bytes(), &before).map_err(|error| access_failure(&path, &error))
}
