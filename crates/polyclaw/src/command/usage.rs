//! `polyclaw usage`: tokens and costs, and what is left of the budgets.

use serde_json::Value;

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::output::{Output, cell};

/// Tokens used, as the model providers reported them, what they cost, and what is left of the budgets.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw usage
  polyclaw usage --window 7d --by day
  polyclaw usage --window 30d --by model --json

What a provider did not report is counted as unknown, never as 0. A cost is known where the config says what the model
costs: [models.\"provider/model\"] input_usd_per_million and output_usd_per_million. Budgets: see [budget].")]
pub struct Args {
    /// How far back: 1h, 24h, 7d or 30d.
    #[arg(long, default_value = "24h")]
    window: String,
    /// What to add up by: agent, model, session or day.
    #[arg(long, default_value = "agent")]
    by: String,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let path = format!("/usage?window={}&by={}", segment(&args.window), segment(&args.by));
    let answer = Client::new(context)?.get(&path).await?;
    context.output.say(&answer, |output| {
        let spent = totals(output, args, &rows(&answer["totals"]));
        let budgets = rows(&answer["budgets"]);
        if budgets.is_empty() { spent } else { format!("{spent}\n\n{}", balances(output, &budgets)) }
    })?;
    Ok(())
}

fn rows(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn totals(output: &Output, args: &Args, totals: &[Value]) -> String {
    if totals.is_empty() {
        return format!("No model was asked in the last {}.", args.window);
    }
    let row = |total: &Value| {
        let mut row = ["group", "calls", "unknown_calls", "input_tokens", "output_tokens"]
            .map(|field| cell(&total[field]))
            .to_vec();
        row.extend([dollars(&total["cost_usd"]), cell(&total["unpriced_calls"])]);
        row
    };
    let by = args.by.to_uppercase();
    let head = [by.as_str(), "CALLS", "UNKNOWN", "INPUT", "OUTPUT", "COST", "UNPRICED"];
    output.table(&head, &totals.iter().map(row).collect::<Vec<_>>())
}

fn balances(output: &Output, budgets: &[Value]) -> String {
    let pair = |left: String, limit: String| if limit == "-" { limit } else { format!("{left} of {limit}") };
    let row = |budget: &Value| {
        vec![
            cell(&budget["purse"]),
            pair(cell(&budget["tokens_left"]), cell(&budget["tokens_limit"])),
            pair(dollars(&budget["usd_left"]), dollars(&budget["usd_limit"])),
            cell(&budget["resets_at"]),
        ]
    };
    let head = ["BUDGET", "TOKENS LEFT", "DOLLARS LEFT", "STARTS ANEW"];
    output.table(&head, &budgets.iter().map(row).collect::<Vec<_>>())
}

/// A dash where it is not known; small amounts to the hundredth of a cent.
pub fn dollars(value: &Value) -> String {
    value.as_f64().map_or_else(|| "-".to_owned(), |usd| format!("${usd:.4}"))
}
