//! Events: rows for people and tools to read. They never start or steer a turn and never appear in a prompt.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{AgentId, TraceId, TurnId};
use crate::session_key::SessionKey;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EventKind {
    #[serde(rename = "message.queued")]
    MessageWaiting,
    #[serde(rename = "message.refused")]
    MessageRefused,
    #[serde(rename = "message.ignored")]
    MessageIgnored,
    #[serde(rename = "message.routed")]
    MessageRouted,
    #[serde(rename = "pairing.requested")]
    PairingRequested,
    #[serde(rename = "pairing.refused")]
    PairingRefused,
    #[serde(rename = "pairing.approved")]
    PairingApproved,
    #[serde(rename = "pairing.revoked")]
    PairingRevoked,
    #[serde(rename = "broadcast.started")]
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
    #[serde(rename = "delivery.suppressed")]
    GateSuppressed,
    #[serde(rename = "delivery.queued")]
    DeliveryQueued,
    #[serde(rename = "delivery.unknown")]
    DeliveryUnknown,
    #[serde(rename = "delivery.failed")]
    DeliveryFailed,
    #[serde(rename = "approval.requested")]
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
    #[serde(rename = "announce.delivered")]
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
    #[serde(rename = "team_message.sent")]
    MailSent,
    #[serde(rename = "team_message.undeliverable")]
    MailUndeliverable,
    #[serde(rename = "cron.missed")]
    ScheduleMissed,
    #[serde(rename = "cron.failed")]
    ScheduleFailed,
}

impl EventKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MessageWaiting => "message.queued",
            Self::MessageRefused => "message.refused",
            Self::MessageIgnored => "message.ignored",
            Self::MessageRouted => "message.routed",
            Self::PairingRequested => "pairing.requested",
            Self::PairingRefused => "pairing.refused",
            Self::PairingApproved => "pairing.approved",
            Self::PairingRevoked => "pairing.revoked",
            Self::BroadcastStarted => "broadcast.started",
            Self::SessionCleaned => "session.cleaned",
            Self::TurnSteered => "turn.steered",
            Self::TurnFailed => "turn.failed",
            Self::TurnCancelled => "turn.cancelled",
            Self::TurnTakenOver => "turn.taken_over",
            Self::BacklogDrained => "backlog.drained",
            Self::GateSuppressed => "delivery.suppressed",
            Self::DeliveryQueued => "delivery.queued",
            Self::DeliveryUnknown => "delivery.unknown",
            Self::DeliveryFailed => "delivery.failed",
            Self::ApprovalRequested => "approval.requested",
            Self::ApprovalDecided => "approval.decided",
            Self::BudgetWarned => "budget.warned",
            Self::ToolRefused => "tool.refused",
            Self::WorkerCrashed => "worker.crashed",
            Self::SessionCompacted => "session.compacted",
            Self::SessionRenewed => "session.renewed",
            Self::RecallPartial => "recall.partial",
            Self::MemoryFlushed => "memory.flushed",
            Self::AnnounceDelivered => "announce.delivered",
            Self::AnnounceHeld => "announce.held",
            Self::AnnounceDismissed => "announce.dismissed",
            Self::RunRefused => "run.refused",
            Self::SessionArchived => "session.archived",
            Self::TeamChanged => "team.changed",
            Self::TaskChanged => "task.changed",
            Self::MailSent => "team_message.sent",
            Self::MailUndeliverable => "team_message.undeliverable",
            Self::ScheduleMissed => "cron.missed",
            Self::ScheduleFailed => "cron.failed",
        }
    }
}

/// A new event, before it is stored and logged.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub kind: EventKind,
    pub session: Option<SessionKey>,
    pub turn: Option<TurnId>,
    pub agent: Option<AgentId>,
    pub trace: Option<TraceId>,
    pub data: Value,
}
