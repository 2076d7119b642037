//! Token usage, cost and budgets.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::budget::{BudgetCalendar, nanos_to_usd};
use polyclaw_domain::provider::TokenUsage;
use polyclaw_domain::time::Millis;
use polyclaw_engine::BudgetBalance;
use polyclaw_store::Tx;
use polyclaw_store::usage::{self, UsageGroupKey};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::error::Result;
use crate::extract::QueryParams;
use crate::state::AppState;

/// Tokens as reported by the provider. Null if it did not report them.
#[derive(Serialize, ToSchema)]
pub struct TokenUsageView {
    /// Input tokens, including cached ones.
    input_tokens: Option<u64>,
    /// Output tokens.
    output_tokens: Option<u64>,
    /// Input tokens served from the provider's cache.
    cached_tokens: Option<u64>,
}

impl From<TokenUsage> for TokenUsageView {
    fn from(usage: TokenUsage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
        }
    }
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, ToSchema)]
pub enum UsageWindow {
    /// The last hour.
    #[serde(rename = "1h")]
    Hour,
    /// The last 24 hours.
    #[default]
    #[serde(rename = "24h")]
    Day,
    /// The last 7 days.
    #[serde(rename = "7d")]
    Week,
    /// The last 30 days.
    #[serde(rename = "30d")]
    Month,
}

impl UsageWindow {
    pub fn as_millis(self) -> i64 {
        const HOUR_MS: i64 = 3_600_000;
        match self {
            Self::Hour => HOUR_MS,
            Self::Day => 24 * HOUR_MS,
            Self::Week => 7 * 24 * HOUR_MS,
            Self::Month => 30 * 24 * HOUR_MS,
        }
    }
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageGroupBy {
    /// One total per agent.
    #[default]
    Agent,
    /// One total per model.
    Model,
    /// One total per session.
    Session,
    /// One total per day.
    Day,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UsageQuery {
    /// The time window. Defaults to `24h`.
    #[serde(default)]
    #[param(inline, required = false)]
    window: UsageWindow,
    /// The grouping of the totals. Defaults to `agent`.
    #[serde(default)]
    #[param(inline, required = false)]
    by: UsageGroupBy,
}

#[derive(Serialize, ToSchema)]
pub struct UsageReport {
    /// The requested time window.
    window: UsageWindow,
    /// The requested grouping.
    by: UsageGroupBy,
    /// The start of the time window.
    #[schema(value_type = String, format = DateTime)]
    since: Millis,
    /// The totals of each group.
    totals: Vec<UsageTotalView>,
    /// Every configured budget with today's balance.
    budgets: Vec<BudgetView>,
}

#[derive(Serialize, ToSchema)]
pub struct UsageTotalView {
    /// The agent id, model, session key or date of the group.
    group: String,
    /// The number of model calls.
    calls: i64,
    /// Calls without reported usage. The sums do not include them.
    unknown_calls: i64,
    /// Input tokens.
    input_tokens: Option<i64>,
    /// Output tokens.
    output_tokens: Option<i64>,
    /// The part of the input tokens that was cached, where reported.
    cached_tokens: Option<i64>,
    /// Cost in US dollars of the calls with known cost. Null if there are none.
    cost_usd: Option<f64>,
    /// Calls with unknown cost, because the usage was not reported or the config has no price.
    unpriced_calls: i64,
}

/// A daily budget. Limits that are not set are null.
#[derive(Serialize, ToSchema)]
pub struct BudgetView {
    /// The budget scope: `instance`, `agent:<id>`, `session:<key>` or `team:<name>`.
    scope: String,
    /// The token limit per day.
    tokens_limit: Option<i64>,
    /// Tokens used today.
    tokens_spent: i64,
    /// Tokens reserved for calls in progress.
    tokens_reserved: i64,
    /// Tokens left today.
    tokens_left: Option<i64>,
    /// The cost limit per day in US dollars.
    usd_limit: Option<f64>,
    /// Cost of today in US dollars.
    usd_spent: f64,
    /// Cost reserved for calls in progress in US dollars.
    usd_reserved: f64,
    /// US dollars left today.
    usd_left: Option<f64>,
    /// Today's calls without reported usage. They count with the amount that was reserved for them.
    unknown_calls: i64,
    /// When the budget resets.
    #[schema(value_type = String, format = DateTime)]
    resets_at: Millis,
}

impl From<BudgetBalance> for BudgetView {
    fn from(balance: BudgetBalance) -> Self {
        let (limits, usage) = (balance.limits, balance.usage);
        let used = usage.spent.plus(usage.reserved);
        Self {
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
    let budgets = app.engine.list_budgets().await?.into_iter().map(BudgetView::from).collect();
    Ok(Json(UsageReport { window: which.window, by: which.by, since, totals, budgets }))
}
