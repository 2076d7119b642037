//! Routing rules: which instance may send which messages to which.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use polyclaw_control::ControlCaller;
use polyclaw_control::message::{NewRoutingRule, RoutingRuleChange};
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::rules::RoutingRule;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::state::ControlState;
use crate::error::Result;
use crate::extract::{JsonBody, PathId, QueryParams};
use crate::paging::{PagePosition, PageRequest};

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListRulesQuery {
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct RuleList {
    /// The rules of this page.
    rules: Vec<RuleView>,
    /// The cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = RoutingRule)]
pub struct RuleView {
    /// The id of the rule.
    id: String,
    /// The id of the sending instance.
    from: String,
    /// The id of the receiving instance.
    to: String,
    /// The current name of the sender.
    from_name: Option<String>,
    /// The current name of the recipient.
    to_name: Option<String>,
    /// A message type, or all types below one: `task.*`.
    r#type: String,
    /// How often delivery is retried before it is given up.
    max_retries: u32,
    /// How many seconds a message may wait before it is given up.
    ttl_secs: u32,
    /// Whether a message starts a stopped recipient.
    auto_start: bool,
    /// When the rule was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
}

impl From<RoutingRule> for RuleView {
    fn from(rule: RoutingRule) -> Self {
        Self {
            id: rule.id,
            from: rule.from.to_string(),
            to: rule.to.to_string(),
            from_name: rule.from_name,
            to_name: rule.to_name,
            r#type: rule.pattern.as_str().to_owned(),
            max_retries: rule.max_retries,
            ttl_secs: rule.ttl_secs,
            auto_start: rule.auto_start,
            created_at: rule.created_at,
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRuleBody {
    /// The sending instance, by id or name.
    from: String,
    /// The receiving instance, by id or name.
    to: String,
    /// A message type, or all types below one: `task.*`.
    r#type: String,
    /// How often delivery is retried before it is given up. Default 5.
    #[schema(minimum = 1, maximum = 100)]
    max_retries: Option<u32>,
    /// How many seconds a message may wait before it is given up. Default 3600.
    #[schema(minimum = 1, maximum = 2_592_000)]
    ttl_secs: Option<u32>,
    /// Whether a message starts a stopped recipient.
    #[serde(default)]
    auto_start: bool,
}

/// Changes of a rule. Omitted fields stay as they are.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RulePatch {
    /// A message type, or all types below one: `task.*`.
    r#type: Option<String>,
    /// How often delivery is retried before it is given up.
    #[schema(minimum = 1, maximum = 100)]
    max_retries: Option<u32>,
    /// How many seconds a message may wait before it is given up.
    #[schema(minimum = 1, maximum = 2_592_000)]
    ttl_secs: Option<u32>,
    /// Whether a message starts a stopped recipient.
    auto_start: Option<bool>,
}

/// Lists routing rules in order of creation.
#[utoipa::path(get, path = "/routing-rules", tag = "messages", params(ListRulesQuery), responses((status = 200, body = RuleList)))]
pub async fn list_rules(
    State(app): State<ControlState>,
    QueryParams(which): QueryParams<ListRulesQuery>,
) -> Result<Json<RuleList>> {
    let paging = PageRequest::from_query("rules", which.limit, which.cursor.as_deref())?;
    let after = paging.after.as_ref().map_or(0, |place| place.at);
    let mut rules = app.control.list_rules(after, paging.row_limit()).await?;
    let next_cursor = paging.cut_page(&mut rules, |rule| PagePosition { at: rule.seq, id: String::new() });
    Ok(Json(RuleList { rules: rules.into_iter().map(RuleView::from).collect(), next_cursor }))
}

/// Allows an instance to send messages of a type to another.
#[utoipa::path(post, path = "/routing-rules", tag = "messages", request_body = NewRuleBody, responses((status = 201, body = RuleView)))]
pub async fn create_rule(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    JsonBody(requested): JsonBody<NewRuleBody>,
) -> Result<(StatusCode, Json<RuleView>)> {
    let new = NewRoutingRule {
        from: requested.from,
        to: requested.to,
        kind: requested.r#type,
        max_retries: requested.max_retries,
        ttl_secs: requested.ttl_secs,
        auto_start: requested.auto_start,
    };
    let made = app.control.create_rule(&by, new).await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// Returns a routing rule.
#[utoipa::path(get, path = "/routing-rules/{id}", tag = "messages", params(("id" = String, Path)), responses((status = 200, body = RuleView)))]
pub async fn show_rule(State(app): State<ControlState>, PathId(id): PathId) -> Result<Json<RuleView>> {
    Ok(Json(app.control.get_rule(&id).await?.into()))
}

/// Changes a routing rule.
/// Messages accepted before keep their terms.
#[utoipa::path(patch, path = "/routing-rules/{id}", tag = "messages", params(("id" = String, Path)), request_body = RulePatch, responses((status = 200, body = RuleView)))]
pub async fn update_rule(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
    JsonBody(patch): JsonBody<RulePatch>,
) -> Result<Json<RuleView>> {
    let change = RoutingRuleChange {
        kind: patch.r#type,
        max_retries: patch.max_retries,
        ttl_secs: patch.ttl_secs,
        auto_start: patch.auto_start,
    };
    Ok(Json(app.control.update_rule(&by, &id, change).await?.into()))
}

/// Deletes a routing rule.
/// Such messages are rejected from now on. Messages accepted before are still delivered.
#[utoipa::path(delete, path = "/routing-rules/{id}", tag = "messages", params(("id" = String, Path)), responses((status = 204)))]
pub async fn delete_rule(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
) -> Result<StatusCode> {
    app.control.remove_rule(&by, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
