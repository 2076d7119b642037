//! Live frames of a session, as subscribers receive them.

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

/// An agent that speaks in a conversation other than its own.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DelegateSpeaker {
    /// The turn of this conversation that waits for the agent.
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
        /// Author of the message, as in the transcript: `user` is a person.
        origin: MessageOrigin,
        text: String,
        waiting: bool,
    },
    /// `resumes`: interrupted turns that this turn answers for.
    #[serde(rename = "turn.started")]
    Started { turn_id: TurnId, agent_id: String, resumes: Vec<TurnId> },
    /// `step`: number of model answers that this turn had stored before. Text of stored answers is in the transcript.
    #[serde(rename = "turn.delta")]
    Delta { turn_id: TurnId, step: usize, text: String },
    #[serde(rename = "turn.reasoning")]
    Reasoning { turn_id: TurnId, step: usize, text: String },
    /// A fallback model starts over; discard the deltas since the last step.
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
        /// The sandbox restrictions measured while the tool ran, with a summary line for people.
        sandbox: Option<Value>,
    },
    /// Another agent starts to speak here, for the turn that waits for it. If it starts again, discard its text since
    /// its last `delegate.ended`.
    #[serde(rename = "delegate.started")]
    DelegateStarted(DelegateSpeaker),
    #[serde(rename = "delegate.delta")]
    DelegateDelta {
        #[serde(flatten)]
        speaker: DelegateSpeaker,
        text: String,
    },
    /// The agent's complete text, as it is sent to chat platforms.
    #[serde(rename = "delegate.ended")]
    DelegateEnded {
        #[serde(flatten)]
        speaker: DelegateSpeaker,
        text: String,
        /// Whether the agent finished its answer.
        is_whole: bool,
    },
    /// A notice for watchers that is not part of the conversation.
    #[serde(rename = "turn.notice")]
    Notice { turn_id: TurnId, text: String },
    /// A model call failed temporarily and is retried; discard its deltas.
    #[serde(rename = "turn.retrying")]
    Retrying {
        turn_id: TurnId,
        model: String,
        /// Class of the failure, for example `overload` or `unreachable`.
        reason: &'static str,
        /// Number of this retry, from 1.
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
        /// Name of the agent or team member that asks.
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
        /// The reply was cut off at the model's length limit.
        truncated: bool,
    },
    /// Something changed in a team that this session leads; holds the data of the event.
    #[serde(rename = "team.changed")]
    Team { change: Value },
    /// Another node changed this session; read the database.
    #[serde(rename = "session.changed")]
    Changed,
}

impl FrameKind {
    /// Whether this is a piece of a text that is also sent complete when it is done.
    pub fn is_partial(&self) -> bool {
        matches!(
            self,
            Self::Delta { .. }
                | Self::Reasoning { .. }
                | Self::ToolOutput { .. }
                | Self::DelegateDelta { .. }
        )
    }

    /// Size of the text in bytes. Other fields are small and not counted.
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
