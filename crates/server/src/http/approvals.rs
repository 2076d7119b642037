//! Questions turns ask a person, and the answers.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::approval::{ApprovalState, Decision};
use polyclaw_domain::id::{ApprovalId, TurnId};
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::approvals::{self, Approval};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::Result;
use crate::extract::{Body, Id};
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct Approvals {
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
    /// `pending`, `approved`, `denied` or `expired`.
    #[schema(value_type = String)]
    state: ApprovalState,
    reason: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Millis,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
}

impl From<Approval> for ApprovalView {
    fn from(approval: Approval) -> Self {
        Self {
            id: approval.id,
            session_key: approval.session,
            turn_id: approval.turn,
            call_id: approval.call_id,
            tool: approval.tool,
            arguments: approval.arguments,
            state: approval.state,
            reason: approval.reason,
            expires_at: approval.expires_at,
            created_at: approval.created_at,
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// `approve` or `deny`.
    #[schema(value_type = String)]
    decision: Decision,
    reason: Option<String>,
}

/// Questions nobody has answered.
#[utoipa::path(get, path = "/approvals", tag = "approvals", responses((status = 200, body = Approvals)))]
pub async fn list(State(app): State<AppState>) -> Result<Json<Approvals>> {
    let now = app.engine.now();
    let pending = app.engine.db().read(move |tx| approvals::pending(tx, now)).await?;
    Ok(Json(Approvals { approvals: pending.into_iter().map(ApprovalView::from).collect() }))
}

/// Answered once: a second answer, or one that comes too late, is refused.
#[utoipa::path(post, path = "/approvals/{id}", tag = "approvals", params(("id" = String, Path)), request_body = Verdict, responses((status = 200, body = ApprovalView)))]
pub async fn decide(
    State(app): State<AppState>,
    Id(id): Id,
    Body(verdict): Body<Verdict>,
) -> Result<Json<ApprovalView>> {
    let id = ApprovalId::new(id);
    let approval = polyclaw_engine::decide(&app.engine, &id, verdict.decision, verdict.reason).await?;
    Ok(Json(approval.into()))
}
