//! Live frames of a session: what the engine publishes, and what clients read from a stream or a socket.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{ApprovalId, MessageId, RunId, TurnId};
use crate::job::JobState;
use crate::message::MessageOrigin;
use crate::provider::TokenUsage;
use crate::session_key::SessionKey;
use crate::task::{TaskNo, TeamTaskState};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HubFrame {
    pub seq: u64,
    pub session_key: SessionKey,
    #[serde(flatten)]
    pub kind: FrameKind,
}

/// An agent that speaks in a conversation other than its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DelegateSpeaker {
    /// The turn of this conversation that waits for the agent.
    pub turn_id: TurnId,
    pub run_id: RunId,
    pub agent_id: String,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
        reason: String,
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
    ApprovalDecided { approval_id: ApprovalId, state: String },
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
    /// A kind of a later version. Only readers have it.
    #[serde(other, skip_serializing)]
    #[schemars(skip)]
    Unknown,
}

/// The data of `team.changed` after a change of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TeamTaskChanged {
    /// The name of the team.
    pub team: String,
    pub task_id: TaskNo,
    /// The kind of change, such as `completed`.
    pub change: String,
    /// Who made the change.
    pub by: String,
    pub state: TeamTaskState,
    pub subject: String,
}

impl FrameKind {
    /// The turn that the frame belongs to.
    pub fn turn_id(&self) -> Option<&TurnId> {
        match self {
            Self::Accepted { turn_id, .. }
            | Self::Started { turn_id, .. }
            | Self::Delta { turn_id, .. }
            | Self::Reasoning { turn_id, .. }
            | Self::Restarted { turn_id }
            | Self::ToolStarted { turn_id, .. }
            | Self::ToolOutput { turn_id, .. }
            | Self::ToolEnded { turn_id, .. }
            | Self::Notice { turn_id, .. }
            | Self::Retrying { turn_id, .. }
            | Self::ApprovalAsked { turn_id, .. }
            | Self::Ended { turn_id, .. } => Some(turn_id),
            Self::DelegateStarted(speaker)
            | Self::DelegateDelta { speaker, .. }
            | Self::DelegateEnded { speaker, .. } => Some(&speaker.turn_id),
            Self::ApprovalDecided { .. } | Self::Team { .. } | Self::Changed | Self::Unknown => None,
        }
    }

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
    pub fn size_bytes(&self) -> usize {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn frames_keep_their_json() {
        let speaker = json!({ "turn_id": "t", "run_id": "r", "agent_id": "ops", "name": "Ops", "text": "a" });
        let whole = json!({ "turn_id": "t", "run_id": "r", "agent_id": "ops", "name": "Ops", "text": "a", "is_whole": true });
        let usage = json!({ "input_tokens": 1, "output_tokens": 2, "cached_tokens": null });
        for (event, data) in [
            (
                "message.accepted",
                json!({ "message_id": "m", "turn_id": "t", "origin": "agent:ops", "text": "a", "waiting": false }),
            ),
            ("turn.started", json!({ "turn_id": "t", "agent_id": "ops", "resumes": ["s"] })),
            ("turn.delta", json!({ "turn_id": "t", "step": 1, "text": "a" })),
            ("turn.reasoning", json!({ "turn_id": "t", "step": 1, "text": "a" })),
            ("turn.restarted", json!({ "turn_id": "t" })),
            (
                "tool.started",
                json!({ "turn_id": "t", "call_id": "c", "name": "shell", "arguments": { "command": "ls" } }),
            ),
            ("tool.output", json!({ "turn_id": "t", "call_id": "c", "text": "a" })),
            (
                "tool.ended",
                json!({ "turn_id": "t", "call_id": "c", "name": "shell", "is_error": true, "text": "a", "sandbox": null }),
            ),
            ("delegate.started", json!({ "turn_id": "t", "run_id": "r", "agent_id": "ops", "name": "Ops" })),
            ("delegate.delta", speaker),
            ("delegate.ended", whole),
            ("turn.notice", json!({ "turn_id": "t", "text": "a" })),
            (
                "turn.retrying",
                json!({ "turn_id": "t", "model": "lab/m", "reason": "overload", "attempt": 1, "wait_ms": 500 }),
            ),
            (
                "approval.requested",
                json!({ "approval_id": "a", "turn_id": "t", "tool": "shell", "arguments": {}, "question": "?", "requested_by": "ops" }),
            ),
            ("approval.decided", json!({ "approval_id": "a", "state": "denied" })),
            (
                "turn.ended",
                json!({ "turn_id": "t", "state": "done", "message_id": "m", "text": "a", "model": null, "usage": usage, "error_code": null, "truncated": false }),
            ),
            ("team.changed", json!({ "change": { "team": "crew" } })),
            ("session.changed", json!({})),
        ] {
            let mut sent = json!({ "seq": 7, "session_key": "agent:main:main", "event": event });
            sent.as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
            let frame: HubFrame = serde_json::from_value(sent.clone()).unwrap();
            assert_ne!(frame.kind, FrameKind::Unknown, "{event}");
            assert_eq!(serde_json::to_value(&frame).unwrap(), sent);
        }
    }

    #[test]
    fn kind_of_a_later_version_is_unknown() {
        let sent =
            json!({ "seq": 7, "session_key": "agent:main:main", "event": "turn.paused", "turn_id": "t" });
        let frame: HubFrame = serde_json::from_value(sent).unwrap();
        assert_eq!((frame.seq, frame.kind), (7, FrameKind::Unknown));
    }
}
