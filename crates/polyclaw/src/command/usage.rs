//! `polyclaw usage`: shows token usage, costs and remaining budgets.

use serde_json::Value;

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::output::{CliOutput, cell_text};

/// Show tokens used as reported by the model providers, their cost, and the remaining budgets.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw usage
  polyclaw usage --window 7d --by day
  polyclaw usage --window 30d --by model --json

Usage that a provider did not report counts as unknown, never as 0. A cost is known if the config has the price of the
model: [models.\"provider/model\"] input_usd_per_million and output_usd_per_million. Budgets are set in [budget].")]
pub struct Args {
    /// Time window: 1h, 24h, 7d or 30d.
    #[arg(long, default_value = "24h")]
    window: String,
    /// Group totals by agent, model, session or day.
    #[arg(long, default_value = "agent")]
    by: String,
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let path = format!("/usage?window={}&by={}", encode_segment(&args.window), encode_segment(&args.by));
    let answer = ApiClient::new(context)?.get(&path).await?;
    context.output.print_value(&answer, |output| {
        let spent = totals_table(output, args, &usage_rows(&answer["totals"]));
        let budgets = usage_rows(&answer["budgets"]);
        if budgets.is_empty() { spent } else { format!("{spent}\n\n{}", budgets_table(output, &budgets)) }
    })?;
    Ok(())
}

fn usage_rows(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn totals_table(output: &CliOutput, args: &Args, totals: &[Value]) -> String {
    if totals.is_empty() {
        return format!("No model calls in the last {}.", args.window);
    }
    let row = |total: &Value| {
        let mut row = ["group", "calls", "unknown_calls", "input_tokens", "output_tokens"]
            .map(|field| cell_text(&total[field]))
            .to_vec();
        row.extend([format_dollars(&total["cost_usd"]), cell_text(&total["unpriced_calls"])]);
        row
    };
    let by = args.by.to_uppercase();
    let head = [by.as_str(), "CALLS", "UNKNOWN", "INPUT", "OUTPUT", "COST", "UNPRICED"];
    output.format_table(&head, &totals.iter().map(row).collect::<Vec<_>>())
}

fn budgets_table(output: &CliOutput, budgets: &[Value]) -> String {
    let pair = |left: String, limit: String| if limit == "-" { limit } else { format!("{left} of {limit}") };
    let row = |budget: &Value| {
        vec![
            cell_text(&budget["scope"]),
            pair(cell_text(&budget["tokens_left"]), cell_text(&budget["tokens_limit"])),
            pair(format_dollars(&budget["usd_left"]), format_dollars(&budget["usd_limit"])),
            cell_text(&budget["resets_at"]),
        ]
    };
    let head = ["BUDGET", "TOKENS LEFT", "COST LEFT", "RESETS AT"];
    output.format_table(&head, &budgets.iter().map(row).collect::<Vec<_>>())
}

/// Formats dollars to a hundredth of a cent, or a dash if unknown.
pub fn format_dollars(value: &Value) -> String {
    value.as_f64().map_or_else(|| "-".to_owned(), |usd| format!("${usd:.4}"))
}
