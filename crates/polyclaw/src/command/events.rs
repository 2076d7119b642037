//! `polyclaw events`: the event log, for people.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::output::{CliOutput, TextTone, cell_text};

const RECONNECT_RETRY_AFTER: Duration = Duration::from_millis(700);

/// List events: failed or yielded turns, delivered or suppressed messages, approvals.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw events
  polyclaw events --follow
  polyclaw events --kind turn.failed --session agent:main:main --json")]
pub struct Args {
    /// Keep printing new events until Ctrl-C.
    #[arg(long, short)]
    follow: bool,
    /// Only events of this kind, such as turn.failed.
    #[arg(long)]
    kind: Option<String>,
    /// Only events of this session.
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// Only events after this sequence number; --json shows it as seq.
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: i64,
}

impl Args {
    fn events_path(&self, after: i64) -> String {
        let mut path = format!("/events?after={after}");
        for (name, value) in [("kind", &self.kind), ("session", &self.session)] {
            if let Some(value) = value {
                path += &format!("&{name}={}", encode_segment(value));
            }
        }
        path
    }
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::new(context)?;
    let mut after = args.after;
    loop {
        let events = client.list_items(&args.events_path(after), "events", usize::MAX).await?;
        let lines: Vec<String> = events.iter().map(|event| event_line(event, context.output)).collect();
        if !args.follow {
            let none = || "No events.".to_owned();
            let text = if lines.is_empty() { none() } else { lines.join("\n") };
            return Ok(context.output.print_value(&json!({ "events": events }), |_| text.clone())?);
        }
        context.output.print_line(&lines.join("\n"))?;
        match events.last().and_then(|event| event["seq"].as_i64()) {
            Some(last) => after = last,
            None => tokio::time::sleep(RECONNECT_RETRY_AFTER).await,
        }
    }
}

fn event_line(event: &Value, output: CliOutput) -> String {
    if output.json {
        return event.to_string();
    }
    let session = event["session_key"].as_str().unwrap_or_default();
    let at = output.paint(TextTone::Dim, &cell_text(&event["created_at"]));
    format!("{at} {} {session} {}", output.paint(TextTone::Bold, &cell_text(&event["kind"])), event["data"])
}
