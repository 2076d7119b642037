//! `polyclaw status`: shows whether the instance is up and what it is doing.

mod all;
mod deep;

use polyclaw_api::channels::{ChannelAccountList, ChannelAccountView};
use polyclaw_api::health::HealthView;
use polyclaw_api::memory::MemoryStatus;
use polyclaw_api::models::ModelList;
use polyclaw_api::status::StatusView;
use polyclaw_domain::provider::ModelRef;
use serde::Serialize;
use serde_json::{Value, json};

use crate::accounts;
use crate::cli::CommandContext;
use crate::client::ApiClient;
use crate::command::status::deep::DeepReport;
use crate::command::{memory, models};
use crate::output::visible_line;

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
    let health: HealthView = client.get_as("/health").await?;
    let models: ModelList = client.get_as("/models").await?;
    let counts: StatusView = client.get_as("/status").await?;
    // A damaged memory file must not hide the rest of the status.
    let memory: Result<MemoryStatus, _> = client.get_as("/memory/status").await;
    let text = match &memory {
        Ok(status) => memory::status_sentence(status),
        Err(failure) => format!(
            "cannot read memories: {} ({}); `polyclaw doctor` checks their file",
            failure.message, failure.code
        ),
    };
    let channels: ChannelAccountList = client.get_as("/channels").await?;
    let report = StatusReport {
        url: client.url(),
        health,
        model: models.default_model.as_ref(),
        sessions: counts.sessions,
        running: counts.running,
        waiting: counts.waiting,
        memory: memory.map_or_else(|failure| json!({ "error": failure.code }), |status| json!(status)),
        channels: channels.channels,
        deep: if args.deep { Some(deep::probe_deep(&client, "", &models).await?) } else { None },
    };
    context.output.print_value(&report, |_| {
        let health = &report.health;
        let mut lines = vec![format!("{} at {}", visible_line(&health.status), report.url)];
        lines.extend(health_problems(health));
        lines.extend([
            format!("version {}, up {}", visible_line(&health.version), format_uptime(health.uptime_ms)),
            format!("model {}", models::default_model_text(&models)),
            counts_line(&counts),
            text.clone(),
        ]);
        lines.extend(report.channels.iter().map(accounts::account_line));
        lines.extend(report.deep.iter().flat_map(deep::probe_lines));
        lines.join("\n")
    })?;
    Ok(())
}

/// The status of one instance, as printed with `--json`.
#[derive(Serialize)]
struct StatusReport<'a> {
    url: &'a str,
    health: HealthView,
    model: Option<&'a ModelRef>,
    sessions: i64,
    running: i64,
    waiting: i64,
    /// The memory status, or the error code of its request.
    memory: Value,
    channels: Vec<ChannelAccountView>,
    #[serde(flatten)]
    deep: Option<DeepReport>,
}

fn counts_line(counts: &StatusView) -> String {
    format!("{} session(s), {} answering, {} waiting", counts.sessions, counts.running, counts.waiting)
}

/// Returns one line for each problem in the health report, with what to do about it.
fn health_problems(health: &HealthView) -> impl Iterator<Item = String> {
    let store = match health.store.status.as_str() {
        "ok" => None,
        "disk_full" => Some(
            "the disk is full: nothing can be stored until some space is free; no accepted message was lost"
                .to_owned(),
        ),
        "store_read_only" => {
            Some("cannot write to the database: check the owner and mode of the home folder".to_owned())
        }
        "unavailable" => Some("the database does not respond; see the log".to_owned()),
        code => Some(format!("the database rejects writes ({code}); see the log")),
    };
    let restarting = health.tasks.iter().filter(|task| task.state == "restarting");
    store.into_iter().chain(restarting.map(|task| format!("{} is restarting", visible_line(&task.task))))
}

fn format_uptime(millis: i64) -> String {
    let seconds = millis / 1000;
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        _ => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_problems_lists_only_unhealthy_parts() {
        let text_of = |store: &str, state: &str| {
            let health = json!({
                "status": "degraded", "version": "1", "uptime_ms": 1, "channels": [],
                "store": { "engine": "sqlite", "status": store },
                "tasks": [{ "task": "worker", "state": state, "restarts": 1 }],
            });
            let health: HealthView = serde_json::from_value(health).unwrap();
            health_problems(&health).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(text_of("ok", "running"), "");
        assert!(text_of("disk_full", "running").starts_with("the disk is full"));
        assert!(text_of("store_unavailable", "running").contains("store_unavailable"));
        assert_eq!(text_of("ok", "restarting"), "worker is restarting");
    }
}
