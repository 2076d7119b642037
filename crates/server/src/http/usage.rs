//! What was spent.

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

/// Tokens as the provider reported them; null where it did not.
#[derive(Serialize, ToSchema)]
pub struct TokenUsageView {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
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
    #[serde(rename = "1h")]
    Hour,
    #[default]
    #[serde(rename = "24h")]
    Day,
    #[serde(rename = "7d")]
    Week,
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
    #[default]
    Agent,
    Model,
    Session,
    Day,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UsageQuery {
    /// `24h` if not given.
    #[serde(default)]
    #[param(inline, required = false)]
    window: UsageWindow,
    /// `agent` if not given.
    #[serde(default)]
    #[param(inline, required = false)]
    by: UsageGroupBy,
}

#[derive(Serialize, ToSchema)]
pub struct UsageReport {
    window: UsageWindow,
    by: UsageGroupBy,
    #[schema(value_type = String, format = DateTime)]
    since: Millis,
    totals: Vec<UsageTotalView>,
    /// Every budget that is set, with what is left of it today.
    budgets: Vec<BudgetView>,
}

#[derive(Serialize, ToSchema)]
pub struct UsageTotalView {
    group: String,
    calls: i64,
    /// Calls whose provider did not say what they took: the sums leave them out.
    unknown_calls: i64,
    input_tokens: Option<i64>,
    output_tokens: Option<i64>,
    /// Part of the input, where the provider said so.
    cached_tokens: Option<i64>,
    /// Dollars of the calls whose cost is known; null where none is.
    cost_usd: Option<f64>,
    /// Calls whose cost is not known: the provider did not say what they took, or the config not what it costs.
    unpriced_calls: i64,
}

/// A budget of one day. Limits that are not set are null.
#[derive(Serialize, ToSchema)]
pub struct BudgetView {
    /// `instance`, `agent:<id>`, `session:<key>` or `team:<name>`.
    scope: String,
    tokens_limit: Option<i64>,
    tokens_spent: i64,
    /// Of calls under way.
    tokens_reserved: i64,
    tokens_left: Option<i64>,
    usd_limit: Option<f64>,
    usd_spent: f64,
    usd_reserved: f64,
    usd_left: Option<f64>,
    /// Calls of today that count as what was reserved for them, since nobody knows what they took.
    unknown_calls: i64,
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
    // `2026-11-16` in place of its number.
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
