//! Plans of team members that may only read until the plan is approved.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::team_message::TeamMessageKind;
use polyclaw_engine::team::{MemberPlan, OutgoingTeamMessage};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::operator_actor;
use super::view::SentTeamMessageView;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathIds};
use crate::state::AppState;

/// The names of the team and the member.
type PlanPath = (String, String);

#[derive(Serialize, ToSchema)]
pub struct PlanView {
    /// `required`: no plan was submitted, or the last one was rejected. `submitted`: a plan waits for approval.
    /// `none`: the member needs no approval.
    status: &'static str,
    /// The id of the pending plan.
    request_id: Option<String>,
    /// The text of the pending plan.
    content: Option<String>,
}

impl From<Option<MemberPlan>> for PlanView {
    fn from(plan: Option<MemberPlan>) -> Self {
        let Some(MemberPlan { approval, content }) = plan else {
            return Self { status: "none", request_id: None, content: None };
        };
        let request_id = approval.request_id().map(str::to_owned);
        Self { status: approval.as_str(), request_id, content }
    }
}

/// Returns the pending plan of a team member.
#[utoipa::path(
    get, path = "/teams/{name}/members/{member}/plan", tag = "teams",
    params(("name" = String, Path), ("member" = String, Path)), responses((status = 200, body = PlanView)),
)]
pub async fn show_plan(
    State(app): State<AppState>,
    PathIds((team, member)): PathIds<PlanPath>,
) -> Result<Json<PlanView>> {
    match app.engine.member_plan(&operator_actor(&app), &team, &member).await {
        Ok(plan) => Ok(Json(plan.into())),
        // A read of an unknown member is no conflict.
        Err(error) if error.code() == "not_a_member" => Err(Error::UnknownMember(quote_safely(&member))),
        Err(error) => Err(error.into()),
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerPlan {
    /// Whether the plan is approved.
    approve: bool,
    /// A comment to the member. Required for a rejection, to say what to change.
    #[serde(default)]
    content: String,
    /// The plan that is meant. Defaults to the pending one.
    request_id: Option<String>,
}

/// Approves or rejects the plan of a team member.
/// The lead can do the same with `SendMessage`.
#[utoipa::path(
    post, path = "/teams/{name}/members/{member}/plan", tag = "teams",
    params(("name" = String, Path), ("member" = String, Path)), request_body = AnswerPlan,
    responses((status = 202, body = SentTeamMessageView)),
)]
pub async fn answer_plan(
    State(app): State<AppState>,
    PathIds((team, member)): PathIds<PlanPath>,
    JsonBody(body): JsonBody<AnswerPlan>,
) -> Result<(StatusCode, Json<SentTeamMessageView>)> {
    let outgoing = OutgoingTeamMessage {
        kind: TeamMessageKind::PlanApprovalResponse,
        to: Some(member),
        content: body.content,
        summary: None,
        request_id: body.request_id,
        approve: Some(body.approve),
        reason: None,
    };
    let receipt = app.engine.send_team_message(&operator_actor(&app), &team, outgoing).await?;
    Ok((StatusCode::ACCEPTED, Json(receipt.into())))
}
