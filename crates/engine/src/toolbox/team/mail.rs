//! `SendMessage`.

use polyclaw_domain::team_message::TeamMessageKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Asked, Done};
use crate::core::Engine;
use crate::team::Outgoing;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Send {
    team_name: String,
    #[serde(rename = "type", default)]
    kind: Kind,
    /// A teammate's name or session key; "lead" is the lead. Not for a broadcast.
    recipient: Option<String>,
    content: Option<String>,
    /// A few words; the first ten of the content if left out. Others see only this.
    summary: Option<String>,
    /// Of the request that is answered: to stop, or to approve a plan.
    request_id: Option<String>,
    /// Whether you agree: to stop, or to the plan.
    approve: Option<bool>,
    /// Why not.
    reason: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    Message,
    Broadcast,
    ShutdownRequest,
    ShutdownResponse,
    PlanApprovalRequest,
    PlanApprovalResponse,
}

pub(super) async fn send(engine: &Engine, asked: Asked<'_>, given: Send) -> Done {
    let outgoing = Outgoing {
        kind: match given.kind {
            Kind::Message => TeamMessageKind::Message,
            Kind::Broadcast => TeamMessageKind::Broadcast,
            Kind::ShutdownRequest => TeamMessageKind::ShutdownRequest,
            Kind::ShutdownResponse => TeamMessageKind::ShutdownResponse,
            Kind::PlanApprovalRequest => TeamMessageKind::PlanApprovalRequest,
            Kind::PlanApprovalResponse => TeamMessageKind::PlanApprovalResponse,
        },
        to: given.recipient,
        content: given.content.unwrap_or_default(),
        summary: given.summary,
        request_id: given.request_id,
        approve: given.approve,
        reason: given.reason,
    };
    let receipt = engine.send_letter(&asked.actor(), &given.team_name, outgoing).await?;
    Ok(json!(receipt).to_string())
}
