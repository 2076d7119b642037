//! Questions turns ask a person, and the answers.

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
    approvals: Vec<ApprovalView>,
}

#[derive(Serialize, ToSchema)]
pub struct ApprovalView {
    #[schema(value_type = String)]
    id: ApprovalId,
    #[schema(value_type = String)]
    session_key: SessionKey,
    #[schema(value_type = String)]
    turn_id: TurnId,
    call_id: String,
    tool: String,
    #[schema(value_type = Object)]
    arguments: Value,
    /// Of the tool and its arguments. An answer that carries it counts for nothing else.
    fingerprint: String,
    /// What the person is asked, in plain words.
    question: String,
    /// The agent or team member that asks.
    requested_by: String,
    /// The channel's conversation it was asked in, whose sender can answer too; null where only the owner can.
    #[schema(value_type = Option<Object>)]
    origin: Option<ChatAddress>,
    /// Who answered.
    decided_by: Option<String>,
    /// `pending`, `approved`, `denied` or `expired`.
    #[schema(value_type = String)]
    state: ApprovalState,
    reason: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Millis,
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
    /// `approve` or `deny`.
    #[schema(value_type = String)]
    pub decision: ApprovalDecision,
    pub reason: Option<String>,
    /// The fingerprint of what was shown: if it is another by now, the answer does not count.
    pub fingerprint: Option<String>,
}

impl ApprovalDecisionBody {
    /// Whoever holds the token is the owner.
    fn into_owner_decision(self) -> polyclaw_engine::ApprovalAnswer {
        let Self { decision, reason, fingerprint } = self;
        polyclaw_engine::ApprovalAnswer { decision, reason, by: ApprovalResponder::Owner, shown: fingerprint }
    }
}

/// Questions nobody has answered.
#[utoipa::path(get, path = "/approvals", tag = "approvals", responses((status = 200, body = ApprovalList)))]
pub async fn list_approvals(State(app): State<AppState>) -> Result<Json<ApprovalList>> {
    let open = app.engine.list_open_approvals().await?;
    Ok(Json(ApprovalList { approvals: open.into_iter().map(ApprovalView::from).collect() }))
}

/// One question, answered or not.
#[utoipa::path(get, path = "/approvals/{id}", tag = "approvals", params(("id" = String, Path)), responses((status = 200, body = ApprovalView)))]
pub async fn show_approval(State(app): State<AppState>, PathId(id): PathId) -> Result<Json<ApprovalView>> {
    let found = app.engine.find_approval(&ApprovalId::new(id.clone())).await?;
    let found = found.ok_or(Error::Engine(polyclaw_engine::Error::UnknownApproval(id)))?;
    Ok(Json(found.into()))
}

/// Answered once: a second answer, or one that comes too late, is refused. Through a control plane, a yes to what needs
/// `admin` when it is asked for directly needs `admin` too.
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

/// What somebody may not do, they may not have an agent do by saying yes to it.
pub async fn check_approver(app: &AppState, AccessLevel(access): AccessLevel, id: &ApprovalId) -> Result<()> {
    if access == TokenAccess::Admin {
        return Ok(());
    }
    // That there is no such question is said by whoever decides it.
    let Some(asked) = app.engine.find_approval(id).await? else { return Ok(()) };
    let needed = access_to_approve(&asked.tool);
    match access >= needed {
        true => Ok(()),
        false => Err(Error::NotToApprove { tool: asked.tool, needed: needed.as_str() }),
    }
}
