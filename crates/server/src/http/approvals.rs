//! Approval requests of turns, and their decisions.

use axum::Json;
use axum::extract::State;
use polyclaw_api::approvals::{ApprovalDecisionBody, ApprovalList, ApprovalView};
use polyclaw_control::access_to_approve;
use polyclaw_domain::approval::{ApprovalDecision, ApprovalResponder};
use polyclaw_domain::id::ApprovalId;
use polyclaw_domain::instance::TokenAccess;
use polyclaw_store::approvals::StoredApproval;

use crate::access::AccessLevel;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathId};
use crate::state::AppState;

fn approval_view(approval: StoredApproval) -> ApprovalView {
    ApprovalView {
        id: approval.id,
        session_key: approval.session,
        turn_id: approval.turn,
        call_id: approval.call_id,
        tool: approval.tool,
        arguments: approval.arguments,
        fingerprint: approval.fingerprint,
        question: approval.question,
        requested_by: approval.requested_by,
        origin: approval.origin,
        decided_by: approval.decided_by,
        state: approval.state,
        reason: approval.reason,
        expires_at: approval.expires_at,
        created_at: approval.created_at,
    }
}

/// Converts the body to an owner's decision, because the token belongs to the owner.
fn owner_decision(body: ApprovalDecisionBody) -> polyclaw_engine::ApprovalAnswer {
    let ApprovalDecisionBody { decision, reason, fingerprint } = body;
    polyclaw_engine::ApprovalAnswer { decision, reason, by: ApprovalResponder::Owner, shown: fingerprint }
}

/// Lists pending approval requests.
#[utoipa::path(get, path = "/approvals", tag = "approvals", responses((status = 200, body = ApprovalList)))]
pub async fn list_approvals(State(app): State<AppState>) -> Result<Json<ApprovalList>> {
    let open = app.engine.list_open_approvals().await?;
    Ok(Json(ApprovalList { approvals: open.into_iter().map(approval_view).collect() }))
}

/// Returns an approval request, decided or not.
#[utoipa::path(get, path = "/approvals/{id}", tag = "approvals", params(("id" = String, Path)), responses((status = 200, body = ApprovalView)))]
pub async fn show_approval(State(app): State<AppState>, PathId(id): PathId) -> Result<Json<ApprovalView>> {
    let found = app.engine.find_approval(&ApprovalId::new(id.clone())).await?;
    let found = found.ok_or(Error::Engine(polyclaw_engine::Error::UnknownApproval(id)))?;
    Ok(Json(approval_view(found)))
}

/// Approves or denies a request.
/// A request can be decided once. A second decision, or one after the request expired, is rejected. Through a control
/// plane, approving an action that requires `admin` when done directly also requires `admin`.
#[utoipa::path(post, path = "/approvals/{id}", tag = "approvals", params(("id" = String, Path)), request_body = ApprovalDecisionBody, responses((status = 200, body = ApprovalView)))]
pub async fn decide_approval(
    State(app): State<AppState>,
    by: AccessLevel,
    PathId(id): PathId,
    JsonBody(verdict): JsonBody<ApprovalDecisionBody>,
) -> Result<Json<ApprovalView>> {
    record_decision(&app, by, &ApprovalId::new(id), verdict).await.map(Json)
}

pub async fn record_decision(
    app: &AppState,
    by: AccessLevel,
    id: &ApprovalId,
    verdict: ApprovalDecisionBody,
) -> Result<ApprovalView> {
    if verdict.decision == ApprovalDecision::Approve {
        check_approver(app, by, id).await?;
    }
    let decided = polyclaw_engine::decide_approval(&app.engine, id, owner_decision(verdict)).await?;
    Ok(approval_view(decided))
}

/// Checks that the caller may approve a tool call: approving requires the access that the action itself would.
pub async fn check_approver(app: &AppState, AccessLevel(access): AccessLevel, id: &ApprovalId) -> Result<()> {
    if access == TokenAccess::Admin {
        return Ok(());
    }
    // Unknown requests are reported by the code that decides.
    let Some(asked) = app.engine.find_approval(id).await? else { return Ok(()) };
    let needed = access_to_approve(&asked.tool);
    match access >= needed {
        true => Ok(()),
        false => Err(Error::NotToApprove { tool: asked.tool, needed: needed.as_str() }),
    }
}
