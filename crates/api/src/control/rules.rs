//! Routing rules: which instance may send which messages to which.

use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListRulesQuery {
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    pub limit: Option<usize>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct RuleList {
    /// The rules of this page.
    pub rules: Vec<RuleView>,
    /// The cursor of the next page. Null on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = RoutingRule)]
pub struct RuleView {
    /// The id of the rule.
    pub id: String,
    /// The id of the sending instance.
    pub from: String,
    /// The id of the receiving instance.
    pub to: String,
    /// The current name of the sender.
    pub from_name: Option<String>,
    /// The current name of the recipient.
    pub to_name: Option<String>,
    /// A message type, or all types below one: `task.*`.
    pub r#type: String,
    /// How often delivery is retried before it is given up.
    pub max_retries: u32,
    /// How many seconds a message may wait before it is given up.
    pub ttl_secs: u32,
    /// Whether a message starts a stopped recipient.
    pub auto_start: bool,
    /// When the rule was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRuleBody {
    /// The sending instance, by id or name.
    pub from: String,
    /// The receiving instance, by id or name.
    pub to: String,
    /// A message type, or all types below one: `task.*`.
    pub r#type: String,
    /// How often delivery is retried before it is given up. Default 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    pub max_retries: Option<u32>,
    /// How many seconds a message may wait before it is given up. Default 3600.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 2_592_000)]
    pub ttl_secs: Option<u32>,
    /// Whether a message starts a stopped recipient.
    #[serde(default)]
    pub auto_start: bool,
}

/// Changes of a rule. Omitted fields stay as they are.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RulePatch {
    /// A message type, or all types below one: `task.*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    /// How often delivery is retried before it is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    pub max_retries: Option<u32>,
    /// How many seconds a message may wait before it is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 2_592_000)]
    pub ttl_secs: Option<u32>,
    /// Whether a message starts a stopped recipient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_start: Option<bool>,
}
