//! Events: rows for people and tools to read. They never drive a turn and are never in a prompt.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{AgentId, TraceId, TurnId};
use crate::session_key::SessionKey;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EventKind {
    #[serde(rename = "message.waiting")]
    MessageWaiting,
    #[serde(rename = "message.refused")]
    MessageRefused,
    #[serde(rename = "message.ignored")]
    MessageIgnored,
    #[serde(rename = "message.routed")]
    MessageRouted,
    #[serde(rename = "pairing.asked")]
    PairingRequested,
    #[serde(rename = "pairing.refused")]
    PairingRefused,
    #[serde(rename = "pairing.approved")]
    PairingApproved,
    #[serde(rename = "pairing.revoked")]
    PairingRevoked,
    #[serde(rename = "round.begun")]
    BroadcastStarted,
    #[serde(rename = "session.cleaned")]
    SessionCleaned,
    #[serde(rename = "turn.steered")]
    TurnSteered,
    #[serde(rename = "turn.failed")]
    TurnFailed,
    #[serde(rename = "turn.cancelled")]
    TurnCancelled,
    #[serde(rename = "turn.taken_over")]
    TurnTakenOver,
    #[serde(rename = "backlog.drained")]
    BacklogDrained,
    #[serde(rename = "gate.kept")]
    GateSuppressed,
    #[serde(rename = "delivery.queued")]
    DeliveryQueued,
    #[serde(rename = "delivery.unknown")]
    DeliveryUnknown,
    #[serde(rename = "delivery.failed")]
    DeliveryFailed,
    #[serde(rename = "approval.asked")]
    ApprovalRequested,
    #[serde(rename = "approval.decided")]
    ApprovalDecided,
    #[serde(rename = "budget.warned")]
    BudgetWarned,
    #[serde(rename = "tool.refused")]
    ToolRefused,
    #[serde(rename = "worker.crashed")]
    WorkerCrashed,
    #[serde(rename = "session.compacted")]
    SessionCompacted,
    #[serde(rename = "session.renewed")]
    SessionRenewed,
    #[serde(rename = "recall.partial")]
    RecallPartial,
    #[serde(rename = "memory.flushed")]
    MemoryFlushed,
    #[serde(rename = "announce.told")]
    AnnounceDelivered,
    #[serde(rename = "announce.held")]
    AnnounceHeld,
    #[serde(rename = "announce.dismissed")]
    AnnounceDismissed,
    #[serde(rename = "run.refused")]
    RunRefused,
    #[serde(rename = "session.archived")]
    SessionArchived,
    #[serde(rename = "team.changed")]
    TeamChanged,
    #[serde(rename = "task.changed")]
    TaskChanged,
    #[serde(rename = "mail.sent")]
    MailSent,
    #[serde(rename = "mail.undeliverable")]
    MailUndeliverable,
    #[serde(rename = "schedule.missed")]
    ScheduleMissed,
    #[serde(rename = "schedule.failed")]
    ScheduleFailed,
}

impl EventKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MessageWaiting => "message.waiting",
            Self::MessageRefused => "message.refused",
            Self::MessageIgnored => "message.ignored",
            Self::MessageRouted => "message.routed",
            Self::PairingRequested => "pairing.asked",
            Self::PairingRefused => "pairing.refused",
            Self::PairingApproved => "pairing.approved",
            Self::PairingRevoked => "pairing.revoked",
            Self::BroadcastStarted => "round.begun",
            Self::SessionCleaned => "session.cleaned",
            Self::TurnSteered => "turn.steered",
            Self::TurnFailed => "turn.failed",
            Self::TurnCancelled => "turn.cancelled",
            Self::TurnTakenOver => "turn.taken_over",
            Self::BacklogDrained => "backlog.drained",
            Self::GateSuppressed => "gate.kept",
            Self::DeliveryQueued => "delivery.queued",
            Self::DeliveryUnknown => "delivery.unknown",
            Self::DeliveryFailed => "delivery.failed",
            Self::ApprovalRequested => "approval.asked",
            Self::ApprovalDecided => "approval.decided",
            Self::BudgetWarned => "budget.warned",
            Self::ToolRefused => "tool.refused",
            Self::WorkerCrashed => "worker.crashed",
            Self::SessionCompacted => "session.compacted",
            Self::SessionRenewed => "session.renewed",
            Self::RecallPartial => "recall.partial",
            Self::MemoryFlushed => "memory.flushed",
            Self::AnnounceDelivered => "announce.told",
            Self::AnnounceHeld => "announce.held",
            Self::AnnounceDismissed => "announce.dismissed",
            Self::RunRefused => "run.refused",
            Self::SessionArchived => "session.archived",
            Self::TeamChanged => "team.changed",
            Self::TaskChanged => "task.changed",
            Self::MailSent => "mail.sent",
            Self::MailUndeliverable => "mail.undeliverable",
            Self::ScheduleMissed => "schedule.missed",
            Self::ScheduleFailed => "schedule.failed",
        }
    }
}

/// One event on its way into its row and its log line.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub kind: EventKind,
    pub session: Option<SessionKey>,
    pub turn: Option<TurnId>,
    pub agent: Option<AgentId>,
    pub trace: Option<TraceId>,
    pub data: Value,
}
