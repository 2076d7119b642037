//! Routing rules: which instance may send which messages to which.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use polyclaw_api::control::rules::{ListRulesQuery, NewRuleBody, RuleList, RulePatch, RuleView};
use polyclaw_control::ControlCaller;
use polyclaw_control::message::{NewRoutingRule, RoutingRuleChange};
use polyclaw_store::registry::rules::RoutingRule;

use super::state::ControlState;
use crate::error::Result;
use crate::extract::{JsonBody, PathId, QueryParams};
use crate::paging::{PagePosition, PageRequest};

fn rule_view(rule: RoutingRule) -> RuleView {
    RuleView {
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
    Ok(Json(RuleList { rules: rules.into_iter().map(rule_view).collect(), next_cursor }))
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
    Ok((StatusCode::CREATED, Json(rule_view(made))))
}

/// Returns a routing rule.
#[utoipa::path(get, path = "/routing-rules/{id}", tag = "messages", params(("id" = String, Path)), responses((status = 200, body = RuleView)))]
pub async fn show_rule(State(app): State<ControlState>, PathId(id): PathId) -> Result<Json<RuleView>> {
    Ok(Json(rule_view(app.control.get_rule(&id).await?)))
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
    Ok(Json(rule_view(app.control.update_rule(&by, &id, change).await?)))
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
