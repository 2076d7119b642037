//! Sending messages to a session: `POST /sessions/{key}/messages`.

use polyclaw_domain::id::{AgentId, MessageId, TurnId};
use polyclaw_domain::job::JobState;
use polyclaw_domain::session_key::SessionKey;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::attachments::AttachmentBody;
use crate::usage::TokenUsageView;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSessionMessage {
    /// The text of the message.
    pub text: String,
    /// The agent of a new session. Defaults to the agent in the key, else the one the bindings select.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub agent: Option<AgentId>,
    /// Messages with the same key in the same session are accepted only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// At most 20 attachments. The request is limited to 32 MB.
    #[serde(default)]
    pub attachments: Vec<AttachmentBody>,
    /// The channel that the person uses: `web` (default), `cli` or `api`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Also send the answer to the chat conversation that belongs to this session.
    #[serde(default)]
    pub deliver: bool,
}

impl NewSessionMessage {
    /// A message without attachments, as the web chat sends it.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            agent: None,
            idempotency_key: None,
            attachments: Vec::new(),
            channel: None,
            deliver: false,
        }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WaitQuery {
    /// How many seconds to wait for the answer, at most 600.
    pub wait: Option<f64>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct SessionMessageReceipt {
    /// The id of the message.
    #[schema(value_type = String)]
    pub message_id: MessageId,
    /// The session of the message.
    #[schema(value_type = String)]
    pub session_key: SessionKey,
    /// The turn that answers the message.
    #[schema(value_type = String)]
    pub turn_id: TurnId,
    /// Whether this message was already accepted before.
    pub duplicate: bool,
    /// Another turn is running. The message is handled at its next step or after it.
    pub waiting: bool,
    /// The answer. Only with `wait`, once the turn has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<TurnReply>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TurnReply {
    /// The id of the reply's message.
    #[schema(value_type = Option<String>)]
    pub message_id: Option<MessageId>,
    /// The text of the reply, or the error.
    pub text: String,
    /// `done`, `failed` or `cancelled`.
    #[schema(value_type = String)]
    pub state: JobState,
    /// The code of the error, if the turn failed.
    pub error_code: Option<String>,
    /// `length` if the reply was cut off at the model's output limit, else null.
    pub finish_reason: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// Tokens used by the turn.
    pub usage: TokenUsageView,
}
