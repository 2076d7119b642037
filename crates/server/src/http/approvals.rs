//! Approval requests of turns, and their decisions.

use axum::Json;
use axum::extract::State;
use polyclaw_control::access_to_approve;
use polyclaw_domain::approval::{ApprovalDecision, ApprovalResponder, ApprovalState};
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::{ApprovalId, TurnId};
use polyclaw_domain::instance::TokenAccess;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::approvals::StoredApproval;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::access::AccessLevel;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathId};
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct ApprovalList {
    /// Pending approval requests.
    approvals: Vec<ApprovalView>,
}

#[derive(Serialize, ToSchema)]
pub struct ApprovalView {
    /// The id of the request.
    #[schema(value_type = String)]
    id: ApprovalId,
    /// The session whose turn asks.
    #[schema(value_type = String)]
    session_key: SessionKey,
    /// The turn that asks.
    #[schema(value_type = String)]
    turn_id: TurnId,
    /// The id of the tool call that needs approval.
    call_id: String,
    /// The tool to run.
    tool: String,
    /// The arguments of the tool call.
    #[schema(value_type = Object)]
    arguments: Value,
    /// A hash of the tool and its arguments. A decision that carries it applies to exactly this call.
    fingerprint: String,
    /// The question to the person in plain words.
    question: String,
    /// The agent or team member whose call needs approval.
    requested_by: String,
    /// The chat conversation the question was sent to, whose sender may decide too. Null if only the owner may.
    #[schema(value_type = Option<Object>)]
    origin: Option<ChatAddress>,
    /// Who decided.
    decided_by: Option<String>,
    /// The state of the request: `pending`, `approved`, `denied` or `expired`.
    #[schema(value_type = String)]
    state: ApprovalState,
    /// The reason given with the decision.
    reason: Option<String>,
    /// When the request expires.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Millis,
    /// When the request was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
}

impl From<StoredApproval> for ApprovalView {
    fn from(approval: StoredApproval) -> Self {
        Self {
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
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalDecisionBody {
    /// The decision: `approve` or `deny`.
    #[schema(value_type = String)]
    pub decision: ApprovalDecision,
    /// The reason, shown to the agent.
    pub reason: Option<String>,
    /// The fingerprint of the request that was shown. The decision is rejected if the request has changed since.
    pub fingerprint: Option<String>,
}

impl ApprovalDecisionBody {
    /// Converts the body to an owner's decision, because the token belongs to the owner.
    fn into_owner_decision(self) -> polyclaw_engine::ApprovalAnswer {
        let Self { decision, reason, fingerprint } = self;
        polyclaw_engine::ApprovalAnswer { decision, reason, by: ApprovalResponder::Owner, shown: fingerprint }
    }
}

/// Lists pending approval requests.
#[utoipa::path(get, path = "/approvals", tag = "approvals", responses((status = 200, body = ApprovalList)))]
pub async fn list_approvals(State(app): State<AppState>) -> Result<Json<ApprovalList>> {
    let open = app.engine.list_open_approvals().await?;
    Ok(Json(ApprovalList { approvals: open.into_iter().map(ApprovalView::from).collect() }))
}

/// Returns an approval request, decided or not.
#[utoipa::path(get, path = "/approvals/{id}", tag = "approvals", params(("id" = String, Path)), responses((status = 200, body = ApprovalView)))]
pub async fn show_approval(State(app): State<AppState>, PathId(id): PathId) -> Result<Json<ApprovalView>> {
    let found = app.engine.find_approval(&ApprovalId::new(id.clone())).await?;
    let found = found.ok_or(Error::Engine(polyclaw_engine::Error::UnknownApproval(id)))?;
    Ok(Json(found.into()))
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
    Ok(polyclaw_engine::decide_approval(&app.engine, id, verdict.into_owner_decision()).await?.into())
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
