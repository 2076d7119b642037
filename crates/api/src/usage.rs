//! Token usage, cost and budgets.

use polyclaw_domain::provider::TokenUsage;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Tokens as reported by the provider. Null if it did not report them.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TokenUsageView {
    /// Input tokens, including cached ones.
    pub input_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// Input tokens served from the provider's cache.
    pub cached_tokens: Option<u64>,
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

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, ToSchema)]
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

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, ToSchema)]
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

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UsageQuery {
    /// The time window. Defaults to `24h`.
    #[serde(default)]
    #[param(inline, required = false)]
    pub window: UsageWindow,
    /// The grouping of the totals. Defaults to `agent`.
    #[serde(default)]
    #[param(inline, required = false)]
    pub by: UsageGroupBy,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct UsageReport {
    /// The requested time window.
    pub window: UsageWindow,
    /// The requested grouping.
    pub by: UsageGroupBy,
    /// The start of the time window.
    #[schema(value_type = String, format = DateTime)]
    pub since: Millis,
    /// The totals of each group.
    pub totals: Vec<UsageTotalView>,
    /// Every configured budget with today's balance.
    pub budgets: Vec<BudgetView>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct UsageTotalView {
    /// The agent id, model, session key or date of the group.
    pub group: String,
    /// The number of model calls.
    pub calls: i64,
    /// Calls without reported usage. The sums do not include them.
    pub unknown_calls: i64,
    /// Input tokens.
    pub input_tokens: Option<i64>,
    /// Output tokens.
    pub output_tokens: Option<i64>,
    /// The part of the input tokens that was cached, where reported.
    pub cached_tokens: Option<i64>,
    /// Cost in US dollars of the calls with known cost. Null if there are none.
    pub cost_usd: Option<f64>,
    /// Calls with unknown cost, because the usage was not reported or the config has no price.
    pub unpriced_calls: i64,
}

/// A daily budget. Limits that are not set are null.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct BudgetView {
    /// The budget scope: `instance`, `agent:<id>`, `session:<key>` or `team:<name>`.
    pub scope: String,
    /// The token limit per day.
    pub tokens_limit: Option<i64>,
    /// Tokens used today.
    pub tokens_spent: i64,
    /// Tokens reserved for calls in progress.
    pub tokens_reserved: i64,
    /// Tokens left today.
    pub tokens_left: Option<i64>,
    /// The cost limit per day in US dollars.
    pub usd_limit: Option<f64>,
    /// Cost of today in US dollars.
    pub usd_spent: f64,
    /// Cost reserved for calls in progress in US dollars.
    pub usd_reserved: f64,
    /// US dollars left today.
    pub usd_left: Option<f64>,
    /// Today's calls without reported usage. They count with the amount that was reserved for them.
    pub unknown_calls: i64,
    /// When the budget resets.
    #[schema(value_type = String, format = DateTime)]
    pub resets_at: Millis,
}
