//! `polyclaw usage`: tokens, as the providers reported them.

use serde_json::Value;

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::output::cell;

/// Tokens used, as the model providers reported them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw usage
  polyclaw usage --window 7d --by model --json

What a provider did not report is counted as unknown, never as 0.")]
pub struct Args {
    /// How far back: 1h, 24h, 7d or 30d.
    #[arg(long, default_value = "24h")]
    window: String,
    /// What to add up by: agent, model or session.
    #[arg(long, default_value = "agent")]
    by: String,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let path = format!("/usage?window={}&by={}", segment(&args.window), segment(&args.by));
    let answer = Client::new(context)?.get(&path).await?;
    let totals = answer["totals"].as_array().cloned().unwrap_or_default();
    let row = |total: &Value| {
        ["group", "calls", "unknown_calls", "input_tokens", "output_tokens"]
            .map(|field| cell(&total[field]))
            .to_vec()
    };
    let rows: Vec<_> = totals.iter().map(row).collect();
    let by = args.by.to_uppercase();
    context.output.say(&answer, |output| match rows.is_empty() {
        true => format!("No model was asked in the last {}.", args.window),
        false => output.table(&[&by, "CALLS", "UNKNOWN", "INPUT", "OUTPUT"], &rows),
    })?;
    Ok(())
}
