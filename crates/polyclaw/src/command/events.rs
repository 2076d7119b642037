//! `polyclaw events`: the event log, for people.

use std::time::Duration;

use polyclaw_api::events::{EventList, EventView};
use serde_json::json;

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::output::{CliOutput, TextTone, visible_line};

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
        let events: Vec<EventView> =
            client.list_pages::<EventList>(&args.events_path(after), usize::MAX).await?;
        let lines: Vec<String> =
            events.iter().map(|event| event_line(event, context.output)).collect::<Result<_, _>>()?;
        if !args.follow {
            let none = || "No events.".to_owned();
            let text = if lines.is_empty() { none() } else { lines.join("\n") };
            return Ok(context.output.print_value(&json!({ "events": events }), |_| text.clone())?);
        }
        context.output.print_line(&lines.join("\n"))?;
        match events.last() {
            Some(last) => after = last.seq,
            None => tokio::time::sleep(RECONNECT_RETRY_AFTER).await,
        }
    }
}

fn event_line(event: &EventView, output: CliOutput) -> serde_json::Result<String> {
    if output.json {
        return Ok(serde_json::to_value(event)?.to_string());
    }
    let session = event.session_key.as_deref().unwrap_or_default();
    let at = output.paint(TextTone::Dim, &event.created_at.to_string());
    let kind = output.paint(TextTone::Bold, &visible_line(&event.kind));
    Ok(format!("{at} {kind} {session} {}", event.data))
}
