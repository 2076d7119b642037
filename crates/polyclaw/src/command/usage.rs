//! `polyclaw usage`: shows token usage, costs and remaining budgets.

use polyclaw_api::usage::{BudgetView, UsageReport, UsageTotalView};

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::output::{CliOutput, cell, visible_line};

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
    let report: UsageReport = ApiClient::new(context)?.get_as(&path).await?;
    context.output.print_value(&report, |output| {
        let spent = totals_table(output, args, &report.totals);
        if report.budgets.is_empty() {
            spent
        } else {
            format!("{spent}\n\n{}", budgets_table(output, &report.budgets))
        }
    })?;
    Ok(())
}

fn totals_table(output: &CliOutput, args: &Args, totals: &[UsageTotalView]) -> String {
    if totals.is_empty() {
        return format!("No model calls in the last {}.", args.window);
    }
    let row = |total: &UsageTotalView| {
        vec![
            visible_line(&total.group),
            total.calls.to_string(),
            total.unknown_calls.to_string(),
            cell(&total.input_tokens),
            cell(&total.output_tokens),
            format_dollars(total.cost_usd),
            total.unpriced_calls.to_string(),
        ]
    };
    let by = args.by.to_uppercase();
    let head = [by.as_str(), "CALLS", "UNKNOWN", "INPUT", "OUTPUT", "COST", "UNPRICED"];
    output.format_table(&head, &totals.iter().map(row).collect::<Vec<_>>())
}

fn budgets_table(output: &CliOutput, budgets: &[BudgetView]) -> String {
    let pair = |left: String, limit: String| if limit == "-" { limit } else { format!("{left} of {limit}") };
    let row = |budget: &BudgetView| {
        vec![
            visible_line(&budget.scope),
            pair(cell(&budget.tokens_left), cell(&budget.tokens_limit)),
            pair(format_dollars(budget.usd_left), format_dollars(budget.usd_limit)),
            budget.resets_at.to_string(),
        ]
    };
    let head = ["BUDGET", "TOKENS LEFT", "COST LEFT", "RESETS AT"];
    output.format_table(&head, &budgets.iter().map(row).collect::<Vec<_>>())
}

/// Formats dollars to a hundredth of a cent, or a dash if unknown.
pub fn format_dollars(usd: Option<f64>) -> String {
    usd.map_or_else(|| "-".to_owned(), |usd| format!("${usd:.4}"))
}
