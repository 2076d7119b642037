//! `polyclaw status`: is it up, and what is it doing.

use serde_json::json;

use crate::accounts;
use crate::cli::Context;
use crate::client::Client;
use crate::command::{memory, models};
use crate::output::cell;

/// Whether it is up, which model answers, what it is doing.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw status
  polyclaw status --json")]
pub struct Args {}

pub async fn run(_: &Args, context: &Context) -> anyhow::Result<()> {
    let client = Client::new(context)?;
    let health = client.get("/health").await?;
    let models = client.get("/models").await?;
    let counts = client.get("/status").await?;
    // The rest is worth telling where the file of memories is damaged.
    let memory = client.get("/memory/status").await;
    let told = match &memory {
        Ok(status) => memory::sentence(status),
        Err(failure) => format!(
            "memories can not be read: {} ({}); `polyclaw doctor` looks at their file",
            failure.message, failure.code
        ),
    };
    let memory = memory.unwrap_or_else(|failure| json!({ "error": failure.code }));
    let channels = client.get("/channels").await?["channels"].take();
    let (sessions, running, waiting) = (&counts["sessions"], &counts["running"], &counts["waiting"]);
    let value = json!({
        "url": client.url(), "health": health, "model": models["default_model"],
        "sessions": sessions, "running": running, "waiting": waiting, "memory": memory, "channels": channels,
    });
    context.output.say(&value, |_| {
        let mut lines = vec![
            format!("{} at {}", cell(&health["status"]), client.url()),
            format!("version {}, up {}", cell(&health["version"]), span(health["uptime_ms"].as_u64())),
            format!("model {}", models::in_use(&models)),
            format!("{sessions} session(s), {running} answering, {waiting} waiting"),
            told.clone(),
        ];
        lines.extend(channels.as_array().into_iter().flatten().map(accounts::sentence));
        lines.join("\n")
    })?;
    Ok(())
}

fn span(millis: Option<u64>) -> String {
    let Some(seconds) = millis.map(|millis| millis / 1000) else { return "-".to_owned() };
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        _ => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
    }
}
