//! Approval requests of turns, and their decisions.

use polyclaw_domain::approval::{ApprovalDecision, ApprovalState};
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::{ApprovalId, TurnId};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ApprovalList {
    /// Pending approval requests.
    pub approvals: Vec<ApprovalView>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ApprovalView {
    /// The id of the request.
    #[schema(value_type = String)]
    pub id: ApprovalId,
    /// The session whose turn asks.
    #[schema(value_type = String)]
    pub session_key: SessionKey,
    /// The turn that asks.
    #[schema(value_type = String)]
    pub turn_id: TurnId,
    /// The id of the tool call that needs approval.
    pub call_id: String,
    /// The tool to run.
    pub tool: String,
    /// The arguments of the tool call.
    #[schema(value_type = Object)]
    pub arguments: Value,
    /// A hash of the tool and its arguments. A decision that carries it applies to exactly this call.
    pub fingerprint: String,
    /// The question to the person in plain words.
    pub question: String,
    /// The agent or team member whose call needs approval.
    pub requested_by: String,
    /// The chat conversation the question was sent to, whose sender may decide too. Null if only the owner may.
    #[schema(value_type = Option<Object>)]
    pub origin: Option<ChatAddress>,
    /// Who decided.
    pub decided_by: Option<String>,
    /// The state of the request: `pending`, `approved`, `denied` or `expired`.
    #[schema(value_type = String)]
    pub state: ApprovalState,
    /// The reason given with the decision.
    pub reason: Option<String>,
    /// When the request expires.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Millis,
    /// When the request was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalDecisionBody {
    /// The decision: `approve` or `deny`.
    #[schema(value_type = String)]
    pub decision: ApprovalDecision,
    /// The reason, shown to the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The fingerprint of the request that was shown. The decision is rejected if the request has changed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}
