//! Token usage, cost and budgets.

use axum::Json;
use axum::extract::State;
use polyclaw_api::usage::{BudgetView, UsageGroupBy, UsageQuery, UsageReport, UsageTotalView};
use polyclaw_domain::budget::{BudgetCalendar, nanos_to_usd};
use polyclaw_engine::BudgetBalance;
use polyclaw_store::Tx;
use polyclaw_store::usage::{self, UsageGroupKey};

use crate::error::Result;
use crate::extract::QueryParams;
use crate::state::AppState;

fn budget_view(balance: BudgetBalance) -> BudgetView {
    let (limits, usage) = (balance.limits, balance.usage);
    let used = usage.spent.plus(usage.reserved);
    BudgetView {
        scope: balance.scope.name(),
        tokens_limit: limits.tokens,
        tokens_spent: usage.spent.tokens,
        tokens_reserved: usage.reserved.tokens,
        tokens_left: limits.tokens.map(|limit| (limit - used.tokens).max(0)),
        usd_limit: limits.nanos.map(nanos_to_usd),
        usd_spent: nanos_to_usd(usage.spent.nanos),
        usd_reserved: nanos_to_usd(usage.reserved.nanos),
        usd_left: limits.nanos.map(|limit| nanos_to_usd((limit - used.nanos).max(0))),
        unknown_calls: usage.unknown_calls,
        resets_at: balance.resets,
    }
}

/// Returns model usage and budgets.
#[utoipa::path(get, path = "/usage", tag = "instance", params(UsageQuery), responses((status = 200, body = UsageReport)))]
pub async fn show_usage(
    State(app): State<AppState>,
    QueryParams(which): QueryParams<UsageQuery>,
) -> Result<Json<UsageReport>> {
    let since = app.engine.now().minus(which.window.as_millis());
    let calendar = app.engine.settings().calendar;
    let by = match which.by {
        UsageGroupBy::Agent => UsageGroupKey::Agent,
        UsageGroupBy::Model => UsageGroupKey::Model,
        UsageGroupBy::Session => UsageGroupKey::Session,
        UsageGroupBy::Day => UsageGroupKey::Day(calendar.offset_ms),
    };
    let found = app.engine.db().read(move |tx: &mut Tx<'_>| usage::sum_totals(tx, since, by)).await?;
    // Shows the date, such as `2026-11-16`, instead of the number of the day.
    let name = |group: String| match (which.by, group.parse()) {
        (UsageGroupBy::Day, Ok(day)) => BudgetCalendar::default().day_start(day).to_string()[..10].to_owned(),
        _ => group,
    };
    let total = |total: usage::GroupedUsage| UsageTotalView {
        group: name(total.group),
        calls: total.calls,
        unknown_calls: total.unknown_calls,
        input_tokens: total.input_tokens,
        output_tokens: total.output_tokens,
        cached_tokens: total.cached_tokens,
        cost_usd: total.cost_nanos.map(nanos_to_usd),
        unpriced_calls: total.unpriced_calls,
    };
    let totals = found.into_iter().map(total).collect();
    let budgets = app.engine.list_budgets().await?.into_iter().map(budget_view).collect();
    Ok(Json(UsageReport { window: which.window, by: which.by, since, totals, budgets }))
}
