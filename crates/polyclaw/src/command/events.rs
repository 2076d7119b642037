//! `polyclaw events`: what happened, for people to read.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::output::{Output, Tone, cell};

const PAUSE: Duration = Duration::from_millis(700);

/// What happened: turns that failed or gave way, messages delivered or kept back, approvals.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw events
  polyclaw events --follow
  polyclaw events --kind turn.failed --session agent:main:main --json")]
pub struct Args {
    /// Go on as events happen, until Ctrl-C.
    #[arg(long, short)]
    follow: bool,
    /// Only those of this kind, for example turn.failed.
    #[arg(long)]
    kind: Option<String>,
    /// Only those of this conversation.
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// Only those after the one with this number; --json shows it as seq.
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: i64,
}

impl Args {
    fn path(&self, after: i64) -> String {
        let mut path = format!("/events?after={after}");
        for (name, value) in [("kind", &self.kind), ("session", &self.session)] {
            if let Some(value) = value {
                path += &format!("&{name}={}", segment(value));
            }
        }
        path
    }
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let client = Client::new(context)?;
    let mut after = args.after;
    loop {
        let events = client.list(&args.path(after), "events", usize::MAX).await?;
        let lines: Vec<String> = events.iter().map(|event| told(event, context.output)).collect();
        if !args.follow {
            let none = || "Nothing happened yet.".to_owned();
            let text = if lines.is_empty() { none() } else { lines.join("\n") };
            return Ok(context.output.say(&json!({ "events": events }), |_| text.clone())?);
        }
        context.output.line(&lines.join("\n"))?;
        match events.last().and_then(|event| event["seq"].as_i64()) {
            Some(last) => after = last,
            None => tokio::time::sleep(PAUSE).await,
        }
    }
}

fn told(event: &Value, output: Output) -> String {
    if output.json {
        return event.to_string();
    }
    let session = event["session_key"].as_str().unwrap_or_default();
    let at = output.paint(Tone::Dim, &cell(&event["created_at"]));
    format!("{at} {} {session} {}", output.paint(Tone::Bold, &cell(&event["kind"])), event["data"])
}
