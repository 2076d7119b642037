//! Which instance may write what to which.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use polyclaw_control::Caller;
use polyclaw_control::message::{NewRule, RuleChange};
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::rules::RoutingRule;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::state::ControlState;
use crate::error::Result;
use crate::extract::{Body, Id, Query};
use crate::paging::{Paging, Place};

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Which {
    #[param(minimum = 1)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct RuleList {
    rules: Vec<RuleView>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = RoutingRule)]
pub struct RuleView {
    id: String,
    /// The ids of both instances.
    from: String,
    to: String,
    /// Their names now.
    from_name: Option<String>,
    to_name: Option<String>,
    /// One type, or all below one: `task.*`.
    r#type: String,
    /// How often it is tried to hand a message over.
    max_retries: u32,
    /// How long a message may wait.
    ttl_secs: u32,
    /// Whether a message starts a recipient that was stopped.
    auto_start: bool,
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
pub struct RuleWish {
    /// Both by id or name.
    from: String,
    to: String,
    /// One type, or all below one: `task.*`.
    r#type: String,
    /// 5 if not given.
    #[schema(minimum = 1, maximum = 100)]
    max_retries: Option<u32>,
    /// 3600 if not given.
    #[schema(minimum = 1, maximum = 2_592_000)]
    ttl_secs: Option<u32>,
    #[serde(default)]
    auto_start: bool,
}

/// What is not given stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RulePatch {
    r#type: Option<String>,
    #[schema(minimum = 1, maximum = 100)]
    max_retries: Option<u32>,
    #[schema(minimum = 1, maximum = 2_592_000)]
    ttl_secs: Option<u32>,
    auto_start: Option<bool>,
}

/// Who may write what to whom, in the order in which it was allowed.
#[utoipa::path(get, path = "/routing-rules", tag = "messages", params(Which), responses((status = 200, body = RuleList)))]
pub async fn list(State(app): State<ControlState>, Query(which): Query<Which>) -> Result<Json<RuleList>> {
    let paging = Paging::of("rules", which.limit, which.cursor.as_deref())?;
    let after = paging.after.as_ref().map_or(0, |place| place.at);
    let mut rules = app.control.rules(after, paging.wanted()).await?;
    let next_cursor = paging.cut(&mut rules, |rule| Place { at: rule.seq, id: String::new() });
    Ok(Json(RuleList { rules: rules.into_iter().map(RuleView::from).collect(), next_cursor }))
}

/// Lets one instance write messages of a type to another.
#[utoipa::path(post, path = "/routing-rules", tag = "messages", request_body = RuleWish, responses((status = 201, body = RuleView)))]
pub async fn create(
    State(app): State<ControlState>,
    Extension(by): Extension<Caller>,
    Body(wish): Body<RuleWish>,
) -> Result<(StatusCode, Json<RuleView>)> {
    let new = NewRule {
        from: wish.from,
        to: wish.to,
        kind: wish.r#type,
        max_retries: wish.max_retries,
        ttl_secs: wish.ttl_secs,
        auto_start: wish.auto_start,
    };
    let made = app.control.make_rule(&by, new).await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// One rule.
#[utoipa::path(get, path = "/routing-rules/{id}", tag = "messages", params(("id" = String, Path)), responses((status = 200, body = RuleView)))]
pub async fn show(State(app): State<ControlState>, Id(id): Id) -> Result<Json<RuleView>> {
    Ok(Json(app.control.rule(&id).await?.into()))
}

/// Changes the terms of a rule. Messages that were taken in before keep those they were taken in with.
#[utoipa::path(patch, path = "/routing-rules/{id}", tag = "messages", params(("id" = String, Path)), request_body = RulePatch, responses((status = 200, body = RuleView)))]
pub async fn change(
    State(app): State<ControlState>,
    Extension(by): Extension<Caller>,
    Id(id): Id,
    Body(patch): Body<RulePatch>,
) -> Result<Json<RuleView>> {
    let change = RuleChange {
        kind: patch.r#type,
        max_retries: patch.max_retries,
        ttl_secs: patch.ttl_secs,
        auto_start: patch.auto_start,
    };
    Ok(Json(app.control.change_rule(&by, &id, change).await?.into()))
}

/// From now on such messages are refused. What was taken in before is delivered.
#[utoipa::path(delete, path = "/routing-rules/{id}", tag = "messages", params(("id" = String, Path)), responses((status = 204)))]
pub async fn remove(
    State(app): State<ControlState>,
    Extension(by): Extension<Caller>,
    Id(id): Id,
) -> Result<StatusCode> {
    app.control.remove_rule(&by, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
