//! `polyclaw status`: shows whether the instance is up and what it is doing.

mod all;
mod deep;

use serde_json::{Value, json};

use crate::accounts;
use crate::cli::CommandContext;
use crate::client::ApiClient;
use crate::command::{memory, models};
use crate::output::cell_text;

/// Show whether the instance is up, which model answers and what it is doing.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw status
  polyclaw status --deep
  polyclaw status --all --json

--all asks the control plane for every instance; one must run: `polyclaw up` or `polyclaw control`.")]
pub struct Args {
    /// Show every instance of this home.
    #[arg(long)]
    all: bool,
    /// Also check each provider, chat account and MCP server.
    #[arg(long)]
    deep: bool,
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    if args.all {
        return all::run(context, args.deep).await;
    }
    let client = ApiClient::new(context)?;
    let health = client.get("/health").await?;
    let models = client.get("/models").await?;
    let counts = client.get("/status").await?;
    // A damaged memory file must not hide the rest of the status.
    let memory = client.get("/memory/status").await;
    let text = match &memory {
        Ok(status) => memory::status_sentence(status),
        Err(failure) => format!(
            "cannot read memories: {} ({}); `polyclaw doctor` checks their file",
            failure.message, failure.code
        ),
    };
    let memory = memory.unwrap_or_else(|failure| json!({ "error": failure.code }));
    let channels = client.get("/channels").await?["channels"].take();
    let (sessions, running, waiting) = (&counts["sessions"], &counts["running"], &counts["waiting"]);
    let mut value = json!({
        "url": client.url(), "health": health, "model": models["default_model"],
        "sessions": sessions, "running": running, "waiting": waiting, "memory": memory, "channels": channels,
    });
    let found = if args.deep { Some(deep::probe_deep(&client, "", &models).await?) } else { None };
    if let Some(found) = &found {
        value["providers"] = found["providers"].clone();
        value["mcp"] = found["mcp"].clone();
    }
    context.output.print_value(&value, |_| {
        let mut lines = vec![format!("{} at {}", cell_text(&health["status"]), client.url())];
        lines.extend(health_problems(&health));
        lines.extend([
            format!(
                "version {}, up {}",
                cell_text(&health["version"]),
                format_duration(health["uptime_ms"].as_u64())
            ),
            format!("model {}", models::default_model_text(&models)),
            format!("{sessions} session(s), {running} answering, {waiting} waiting"),
            text.clone(),
        ]);
        lines.extend(channels.as_array().into_iter().flatten().map(accounts::describe_account));
        lines.extend(found.iter().flat_map(deep::probe_lines));
        lines.join("\n")
    })?;
    Ok(())
}

/// Returns one line for each problem in the health report, with what to do about it.
fn health_problems(health: &Value) -> impl Iterator<Item = String> {
    let store = match health["store"]["status"].as_str() {
        None | Some("ok") => None,
        Some("disk_full") => Some(
            "the disk is full: nothing can be stored until some space is free; no accepted message was lost"
                .to_owned(),
        ),
        Some("store_read_only") => {
            Some("cannot write to the database: check the owner and mode of the home folder".to_owned())
        }
        Some("unavailable") => Some("the database does not respond; see the log".to_owned()),
        Some(code) => Some(format!("the database rejects writes ({code}); see the log")),
    };
    let restarting = array_items(&health["tasks"]).filter(|task| task["state"] == "restarting");
    store.into_iter().chain(restarting.map(|task| format!("{} is restarting", cell_text(&task["task"]))))
}

fn format_duration(millis: Option<u64>) -> String {
    let Some(seconds) = millis.map(|millis| millis / 1000) else { return "-".to_owned() };
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        _ => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
    }
}

fn array_items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_and_nothing_where_nothing_is() {
        let text_of = |store: &str, state: &str| {
            let health =
                json!({ "store": { "status": store }, "tasks": [{ "task": "worker", "state": state }] });
            health_problems(&health).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(text_of("ok", "running"), "");
        assert_eq!(health_problems(&Value::Null).count(), 0, "an older instance reports less");
        assert!(text_of("disk_full", "running").starts_with("the disk is full"));
        assert!(text_of("store_unavailable", "running").contains("store_unavailable"));
        assert_eq!(text_of("ok", "restarting"), "worker is restarting");
    }
}
