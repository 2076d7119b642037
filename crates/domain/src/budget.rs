//! Budgets: prices, days, and the rule that refuses the next call. Money is counted in billionths of a dollar, so that
//! sums are exact.

use crate::agent::AgentBudget;
use crate::locale::Locale;
use crate::localized;
use crate::media;
use crate::prompt::estimate_text_tokens;
use crate::provider::{Prompt, PromptMessage, TokenUsage};
use crate::time::Millis;

/// Billionths of a US dollar.
pub type NanoUsd = i64;

const NANOS_PER_USD: f64 = 1e9;
const DAY_MS: i64 = 86_400_000;

/// Answer length that is reserved and requested if the agent sets no `max_tokens`.
pub const DEFAULT_ANSWER_TOKENS: u32 = 8_192;

/// Price of a model, in dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelPrice {
    pub input: f64,
    pub output: f64,
    /// Price of input that the provider cached. Defaults to the input price.
    pub cached: Option<f64>,
}

impl ModelPrice {
    pub const FREE: Self = Self { input: 0.0, output: 0.0, cached: None };

    /// Returns the cost of a call. `None` if the provider did not report its tokens.
    pub fn usage_cost(&self, usage: TokenUsage) -> Option<NanoUsd> {
        let (input, output) = (usage.input_tokens?, usage.output_tokens?);
        let cached = usage.cached_tokens.unwrap_or(0).min(input);
        let kept = token_cost(self.cached.unwrap_or(self.input), cached);
        Some(token_cost(self.input, input - cached) + kept + token_cost(self.output, output))
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn token_cost(usd_per_million: f64, tokens: u64) -> NanoUsd {
    (usd_per_million * 1_000.0 * tokens as f64).round() as NanoUsd
}

#[allow(clippy::cast_possible_truncation)]
pub fn usd_to_nanos(usd: f64) -> NanoUsd {
    (usd * NANOS_PER_USD).round() as NanoUsd
}

#[allow(clippy::cast_precision_loss)]
pub fn nanos_to_usd(nanos: NanoUsd) -> f64 {
    nanos as f64 / NANOS_PER_USD
}

/// Days at an offset from UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetCalendar {
    pub offset_ms: i64,
}

impl BudgetCalendar {
    /// Returns the number of days since 1970.
    pub fn day_number(self, now: Millis) -> i64 {
        (now.0 + self.offset_ms).div_euclid(DAY_MS)
    }

    pub fn day_start(self, day: i64) -> Millis {
        Millis(day * DAY_MS - self.offset_ms)
    }
}

/// An amount that is spent or reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetAmount {
    pub tokens: i64,
    pub nanos: NanoUsd,
}

impl BudgetAmount {
    pub fn plus(self, other: Self) -> Self {
        Self { tokens: self.tokens + other.tokens, nanos: self.nanos + other.nanos }
    }
}

/// Estimates the maximum of one call: its prompt plus the longest answer. The cost is `None` if the price of a
/// candidate is unknown.
pub fn estimate_call(prompt: &Prompt, dearest: Option<ModelPrice>) -> (i64, Option<NanoUsd>) {
    let words = |message: &PromptMessage| match message {
        PromptMessage::User { text, images } => {
            estimate_text_tokens(text) + images.len() * media::TOKENS_PER_IMAGE
        }
        PromptMessage::ToolResult { content, .. } => estimate_text_tokens(content),
        PromptMessage::Assistant { text, calls } => {
            estimate_text_tokens(text)
                + calls.iter().map(|call| call.arguments.to_string().len() / 3).sum::<usize>()
        }
    };
    let tools: usize = prompt
        .tools
        .iter()
        .map(|tool| tool.description.len() / 4 + tool.parameters.to_string().len() / 3)
        .sum();
    let messages: usize = prompt.messages.iter().map(|message| words(message) + 8).sum();
    let input = (estimate_text_tokens(&prompt.system) + messages + tools) as u64;
    let output = u64::from(prompt.max_tokens.unwrap_or(DEFAULT_ANSWER_TOKENS));
    let usage = TokenUsage { input_tokens: Some(input), output_tokens: Some(output), cached_tokens: None };
    let tokens = i64::try_from(input + output).unwrap_or(i64::MAX);
    (tokens, dearest.and_then(|price| price.usage_cost(usage)))
}

/// A budget that is charged. Its name is stored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetScope {
    Instance,
    Agent(String),
    /// A session and everything started for it.
    Session(String),
    /// The members of all teams of a name, and everything started for them.
    Team(String),
}

impl BudgetScope {
    pub fn name(&self) -> String {
        match self {
            Self::Instance => "instance".to_owned(),
            Self::Agent(id) => format!("agent:{id}"),
            Self::Session(key) => format!("session:{key}"),
            Self::Team(name) => format!("team:{name}"),
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        match name.split_once(':') {
            None if name == "instance" => Some(Self::Instance),
            Some(("agent", id)) => Some(Self::Agent(id.to_owned())),
            Some(("session", key)) => Some(Self::Session(key.to_owned())),
            Some(("team", name)) => Some(Self::Team(name.to_owned())),
            _ => None,
        }
    }

    fn describe(&self, locale: Locale) -> String {
        match self {
            Self::Instance => localized!(locale, "this instance", "此实例"),
            Self::Agent(id) => localized!(locale, "the agent '{id}'", "智能体“{id}”"),
            Self::Session(_) => localized!(locale, "this session", "此会话"),
            Self::Team(name) => localized!(locale, "the team '{name}'", "团队“{name}”"),
        }
    }

    fn config_setting(&self, locale: Locale) -> String {
        match self {
            Self::Instance => localized!(locale, "[budget] in config.toml", "config.toml 的 [budget]"),
            Self::Agent(_) => localized!(
                locale,
                "the agent's budget (config.toml, or `polyclaw agents`)",
                "该智能体的预算（config.toml 或 `polyclaw agents`）",
            ),
            Self::Session(_) => {
                localized!(locale, "[budget.session] in config.toml", "config.toml 的 [budget.session]")
            }
            Self::Team(_) => {
                localized!(locale, "[budget.team] in config.toml", "config.toml 的 [budget.team]")
            }
        }
    }
}

/// The limits of one day, as exact numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DailyLimits {
    pub tokens: Option<i64>,
    pub nanos: Option<NanoUsd>,
}

impl DailyLimits {
    pub fn from_budget(budget: &AgentBudget) -> Self {
        Self {
            tokens: budget.tokens_per_day.and_then(|tokens| i64::try_from(tokens).ok()),
            nanos: budget.usd_per_day.map(usd_to_nanos),
        }
    }

    pub fn is_unlimited(self) -> bool {
        self == Self::default()
    }

    /// Returns the limit that is reached, if any. Reservations count, so the call that reaches the limit is the last
    /// one.
    pub fn reached_limit(self, used: BudgetAmount) -> Option<ReachedLimit> {
        let tokens = self.tokens.filter(|limit| used.tokens >= *limit);
        let nanos = self.nanos.filter(|limit| used.nanos >= *limit);
        let tokens = tokens.map(|limit| ReachedLimit::Tokens { used: used.tokens, limit });
        tokens.or(nanos.map(|limit| ReachedLimit::Usd { used: used.nanos, limit }))
    }

    /// Returns the limit of which 80 % is reached, if any.
    pub fn nearly_reached_limit(self, used: BudgetAmount) -> Option<ReachedLimit> {
        let part = |limit: i64| limit / 5 * 4 + limit % 5 * 4 / 5;
        let tokens = self.tokens.filter(|limit| used.tokens >= part(*limit));
        let nanos = self.nanos.filter(|limit| used.nanos >= part(*limit));
        let tokens = tokens.map(|limit| ReachedLimit::Tokens { used: used.tokens, limit });
        tokens.or(nanos.map(|limit| ReachedLimit::Usd { used: used.nanos, limit }))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachedLimit {
    Tokens { used: i64, limit: i64 },
    Usd { used: NanoUsd, limit: NanoUsd },
}

impl ReachedLimit {
    fn describe(self, locale: Locale) -> String {
        match self {
            Self::Tokens { used, limit } => {
                localized!(locale, "{used} of {limit} tokens", "{used} / {limit} Token")
            }
            Self::Usd { used, limit } => {
                let (used, limit) = (nanos_to_usd(used), nanos_to_usd(limit));
                localized!(locale, "${used:.2} of ${limit:.2}", "${used:.2} / ${limit:.2}")
            }
        }
    }
}

/// Returns the text for the user when the next call is refused.
pub fn daily_refusal(locale: Locale, scope: &BudgetScope, reached: ReachedLimit, resets: Millis) -> String {
    let (whose, used, setting) =
        (scope.describe(locale), reached.describe(locale), scope.config_setting(locale));
    localized!(
        locale,
        "The daily budget of {whose} is used up ({used}, including calls in progress). It resets at {resets}. To \
         continue earlier, raise {setting}.",
        "{whose}的每日预算已用完（{used}，含进行中的调用），于 {resets} 重置。要提前继续，请提高 {setting}。",
    )
}

pub fn turn_refusal(locale: Locale, used: NanoUsd, limit: NanoUsd) -> String {
    let (used, limit) = (nanos_to_usd(used), nanos_to_usd(limit));
    localized!(
        locale,
        "The turn stopped because it has cost ${used:.2}; the limit for one turn is ${limit:.2}. Send a message to \
         continue with a new turn, or raise usd_per_turn.",
        "此回合已停止：费用已达 ${used:.2}，单个回合的上限为 ${limit:.2}。发送消息即可用新回合继续，或提高 usd_per_turn。",
    )
}

/// Returns the refusal of a model without a known price: a dollar budget cannot be enforced by guessing.
pub fn unpriced_model_refusal(locale: Locale, model: &str) -> String {
    localized!(
        locale,
        "A budget in dollars applies here, but the price of {model} is unknown. Set input_usd_per_million and \
         output_usd_per_million under [models.\"{model}\"] in config.toml, or use tokens_per_day for the budget.",
        "此处设置了美元预算，但 {model} 的价格未知。请在 config.toml 的 [models.\"{model}\"] 中设置 \
         input_usd_per_million 和 output_usd_per_million，或改用 tokens_per_day 作为预算。",
    )
}

/// Returns the text for the user, once a day, when 80 % is used.
pub fn daily_warning(locale: Locale, scope: &BudgetScope, reached: ReachedLimit, resets: Millis) -> String {
    let (whose, used) = (scope.describe(locale), reached.describe(locale));
    localized!(
        locale,
        "Over 80 % of the daily budget of {whose} is used ({used}). It resets at {resets}.",
        "{whose}的每日预算已使用超过 80%（{used}），于 {resets} 重置。",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64, cached: Option<u64>) -> TokenUsage {
        TokenUsage { input_tokens: Some(input), output_tokens: Some(output), cached_tokens: cached }
    }

    #[test]
    fn usage_cost_is_exact_or_unknown() {
        let price = ModelPrice { input: 3.0, output: 15.0, cached: Some(0.3) };
        assert_eq!(price.usage_cost(usage(1_000_000, 1_000_000, None)), Some(usd_to_nanos(18.0)));
        assert_eq!(price.usage_cost(usage(1_000, 0, Some(900))), Some(100 * 3_000 + 900 * 300));
        assert_eq!(price.usage_cost(TokenUsage { input_tokens: Some(7), ..TokenUsage::default() }), None);
        assert_eq!(ModelPrice { input: 0.0375, ..ModelPrice::FREE }.usage_cost(usage(1, 0, None)), Some(38));
        let cent =
            ModelPrice { input: 0.1, output: 0.0, cached: None }.usage_cost(usage(1, 0, None)).unwrap();
        assert_eq!(cent * 100_000, usd_to_nanos(0.01), "a hundred thousand calls add up to the cent");
    }

    #[test]
    fn budget_day_starts_at_configured_offset() {
        let noon = Millis::parse("2026-11-16T12:00:00.000Z").unwrap();
        let utc = BudgetCalendar::default();
        assert_eq!(utc.day_start(utc.day_number(noon)).to_string(), "2026-11-16T00:00:00.000Z");
        let vienna = BudgetCalendar { offset_ms: 3_600_000 };
        assert_eq!(vienna.day_start(vienna.day_number(noon)).to_string(), "2026-11-15T23:00:00.000Z");
        assert_eq!(vienna.day_start(vienna.day_number(noon) + 1).to_string(), "2026-11-16T23:00:00.000Z");
        let west = BudgetCalendar { offset_ms: -5 * 3_600_000 };
        let early = Millis::parse("2026-11-16T03:00:00.000Z").unwrap();
        assert_eq!(west.day_start(west.day_number(early)).to_string(), "2026-11-15T05:00:00.000Z");
    }

    #[test]
    fn daily_limit_warns_at_80_percent_and_stops_at_maximum() {
        let limits = DailyLimits { tokens: Some(101), nanos: Some(usd_to_nanos(1.0)) };
        let used = |tokens, dollars| BudgetAmount { tokens, nanos: usd_to_nanos(dollars) };
        assert_eq!(limits.reached_limit(used(100, 0.99)), None);
        assert_eq!(
            limits.reached_limit(used(101, 0.0)),
            Some(ReachedLimit::Tokens { used: 101, limit: 101 })
        );
        assert!(matches!(limits.reached_limit(used(0, 1.0)), Some(ReachedLimit::Usd { .. })));
        assert_eq!(limits.nearly_reached_limit(used(79, 0.79)), None);
        assert!(
            limits.nearly_reached_limit(used(80, 0.0)).is_some()
                && limits.nearly_reached_limit(used(0, 0.8)).is_some()
        );
        assert!(
            DailyLimits { tokens: Some(0), nanos: None }.reached_limit(used(0, 0.0)).is_some(),
            "nothing may be spent"
        );
    }

    #[test]
    fn budget_scope_name_parses_back_and_refusal_names_it() {
        for scope in [
            BudgetScope::Instance,
            BudgetScope::Agent("main".into()),
            BudgetScope::Session("agent:main:main".into()),
            BudgetScope::Team("web".into()),
        ] {
            assert_eq!(BudgetScope::parse(&scope.name()), Some(scope));
        }
        let reached = ReachedLimit::Usd { used: usd_to_nanos(5.004), limit: usd_to_nanos(5.0) };
        let text = daily_refusal(Locale::English, &BudgetScope::Agent("ops".into()), reached, Millis(0));
        assert!(
            text.contains("'ops'") && text.contains("$5.00 of $5.00") && text.contains("1970-01-01T00:00"),
            "{text}"
        );
    }
}
