//! What readers of a session are told.

use polyclaw_domain::id::{ApprovalId, MessageId, RunId, TurnId};
use polyclaw_domain::job::JobState;
use polyclaw_domain::message::MessageOrigin;
use polyclaw_domain::provider::TokenUsage;
use polyclaw_domain::session_key::SessionKey;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HubFrame {
    pub seq: u64,
    pub session_key: SessionKey,
    #[serde(flatten)]
    pub kind: FrameKind,
}

/// Who speaks in a conversation that is not its own.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DelegateSpeaker {
    /// The turn of this conversation that waits.
    pub turn_id: TurnId,
    pub run_id: RunId,
    pub agent_id: String,
    pub name: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "event")]
pub enum FrameKind {
    #[serde(rename = "message.accepted")]
    Accepted {
        message_id: MessageId,
        turn_id: TurnId,
        /// Who wrote it, as the transcript says it: `user` is a person.
        origin: MessageOrigin,
        text: String,
        waiting: bool,
    },
    /// `resumes`: interrupted turns this one answers for.
    #[serde(rename = "turn.started")]
    Started { turn_id: TurnId, agent_id: String, resumes: Vec<TurnId> },
    /// `step`: how many answers of the model this turn has stored before. What belongs to a stored one is in the
    /// transcript.
    #[serde(rename = "turn.delta")]
    Delta { turn_id: TurnId, step: usize, text: String },
    #[serde(rename = "turn.reasoning")]
    Reasoning { turn_id: TurnId, step: usize, text: String },
    /// A fallback model starts over; deltas since the last step no longer count.
    #[serde(rename = "turn.restarted")]
    Restarted { turn_id: TurnId },
    #[serde(rename = "tool.started")]
    ToolStarted { turn_id: TurnId, call_id: String, name: String, arguments: Value },
    #[serde(rename = "tool.output")]
    ToolOutput { turn_id: TurnId, call_id: String, text: String },
    #[serde(rename = "tool.ended")]
    ToolEnded {
        turn_id: TurnId,
        call_id: String,
        name: String,
        is_error: bool,
        text: String,
        /// What was in force while it ran, measured; and the same as a line for people.
        sandbox: Option<Value>,
    },
    /// Another agent begins to speak here, for the turn that waits for it; or begins again, and what it said since its
    /// last end no longer counts.
    #[serde(rename = "delegate.started")]
    DelegateStarted(DelegateSpeaker),
    #[serde(rename = "delegate.delta")]
    DelegateDelta {
        #[serde(flatten)]
        speaker: DelegateSpeaker,
        text: String,
    },
    /// All it said, as it stands on platforms too.
    #[serde(rename = "delegate.ended")]
    DelegateEnded {
        #[serde(flatten)]
        speaker: DelegateSpeaker,
        text: String,
        /// It came to the end of what it had to say.
        is_whole: bool,
    },
    /// Something to tell whoever watches that is no part of the conversation.
    #[serde(rename = "turn.notice")]
    Notice { turn_id: TurnId, text: String },
    /// A model call failed by chance and is made again: what streamed of it no longer counts.
    #[serde(rename = "turn.retrying")]
    Retrying {
        turn_id: TurnId,
        model: String,
        /// The class of the failure, for example `overload` or `unreachable`.
        reason: &'static str,
        /// Which retry of this call it is, from 1.
        attempt: u32,
        wait_ms: u64,
    },
    #[serde(rename = "approval.requested")]
    ApprovalAsked {
        approval_id: ApprovalId,
        turn_id: TurnId,
        tool: String,
        arguments: Value,
        question: String,
        /// The agent or team member that asks.
        requested_by: String,
    },
    #[serde(rename = "approval.decided")]
    ApprovalDecided { approval_id: ApprovalId, state: &'static str },
    #[serde(rename = "turn.ended")]
    Ended {
        turn_id: TurnId,
        state: JobState,
        message_id: Option<MessageId>,
        text: Option<String>,
        model: Option<String>,
        usage: TokenUsage,
        error_code: Option<String>,
        /// The reply ended at the model's length limit.
        truncated: bool,
    },
    /// Something happened in a team that this session leads: what its event says.
    #[serde(rename = "team.changed")]
    Team { change: Value },
    /// Another node did something in this session: look at the database.
    #[serde(rename = "session.changed")]
    Changed,
}

impl FrameKind {
    /// A piece of something that is told whole when it is done.
    pub fn is_partial(&self) -> bool {
        matches!(
            self,
            Self::Delta { .. }
                | Self::Reasoning { .. }
                | Self::ToolOutput { .. }
                | Self::DelegateDelta { .. }
        )
    }

    /// What its text weighs; the rest is small.
    pub(super) fn size_bytes(&self) -> usize {
        match self {
            Self::Accepted { text, .. } | Self::Delta { text, .. } | Self::Reasoning { text, .. } => {
                text.len()
            }
            Self::Notice { text, .. } | Self::ToolOutput { text, .. } | Self::ToolEnded { text, .. } => {
                text.len()
            }
            Self::DelegateDelta { text, .. } | Self::DelegateEnded { text, .. } => text.len(),
            Self::Ended { text, .. } => text.as_ref().map_or(0, String::len),
            Self::ToolStarted { arguments, .. } | Self::ApprovalAsked { arguments, .. } => {
                arguments.to_string().len()
            }
            _ => 0,
        }
    }
}
