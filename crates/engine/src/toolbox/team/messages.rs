//! `SendMessage`.

use polyclaw_domain::team_message::TeamMessageKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{ToolCallResult, ToolInvocation};
use crate::core::Engine;
use crate::team::OutgoingTeamMessage;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendMessageArguments {
    team_name: String,
    #[serde(rename = "type", default)]
    kind: SendMessageKind,
    /// Teammate name or session key; "lead" is the lead. Not for a broadcast.
    recipient: Option<String>,
    content: Option<String>,
    /// A few words; defaults to the first ten of the content. Others see only this.
    summary: Option<String>,
    /// Id of the shutdown or plan request you answer.
    request_id: Option<String>,
    /// Whether you approve the request.
    approve: Option<bool>,
    /// Reason for a rejection.
    reason: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SendMessageKind {
    #[default]
    Message,
    Broadcast,
    ShutdownRequest,
    ShutdownResponse,
    PlanApprovalRequest,
    PlanApprovalResponse,
}

pub(super) async fn send_message(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    given: SendMessageArguments,
) -> ToolCallResult {
    let outgoing = OutgoingTeamMessage {
        kind: match given.kind {
            SendMessageKind::Message => TeamMessageKind::Message,
            SendMessageKind::Broadcast => TeamMessageKind::Broadcast,
            SendMessageKind::ShutdownRequest => TeamMessageKind::ShutdownRequest,
            SendMessageKind::ShutdownResponse => TeamMessageKind::ShutdownResponse,
            SendMessageKind::PlanApprovalRequest => TeamMessageKind::PlanApprovalRequest,
            SendMessageKind::PlanApprovalResponse => TeamMessageKind::PlanApprovalResponse,
        },
        to: given.recipient,
        content: given.content.unwrap_or_default(),
        summary: given.summary,
        request_id: given.request_id,
        approve: given.approve,
        reason: given.reason,
    };
    let receipt = engine.send_team_message(&asked.team_actor(), &given.team_name, outgoing).await?;
    Ok(json!(receipt).to_string())
}
