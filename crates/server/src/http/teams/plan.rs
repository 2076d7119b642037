//! Plans of team members that may only read until the plan is approved.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polyclaw_api::teams::SentTeamMessageView;
use polyclaw_api::teams::plan::{AnswerPlan, PlanView};
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::team_message::TeamMessageKind;
use polyclaw_engine::team::{MemberPlan, OutgoingTeamMessage};

use super::operator_actor;
use super::view::sent_team_message_view;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathIds};
use crate::state::AppState;

/// The names of the team and the member.
type PlanPath = (String, String);

fn plan_view(plan: Option<MemberPlan>) -> PlanView {
    let Some(MemberPlan { approval, content }) = plan else {
        return PlanView { status: "none".to_owned(), request_id: None, content: None };
    };
    let request_id = approval.request_id().map(str::to_owned);
    PlanView { status: approval.as_str().to_owned(), request_id, content }
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
        Ok(plan) => Ok(Json(plan_view(plan))),
        // Reading the plan of an unknown member is not a conflict.
        Err(error) if error.code() == "not_a_member" => Err(Error::UnknownMember(quote_safely(&member))),
        Err(error) => Err(error.into()),
    }
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
    Ok((StatusCode::ACCEPTED, Json(sent_team_message_view(receipt))))
}
