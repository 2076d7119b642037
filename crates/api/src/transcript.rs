//! The transcript and the backlog of a session.

use polyclaw_domain::id::{MessageId, TurnId};
use polyclaw_domain::message::{MessageOrigin, MessagePart, MessageRole};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct SessionMessageView {
    /// The id of the message.
    #[schema(value_type = String)]
    pub id: MessageId,
    /// The position in the session.
    pub position: i64,
    /// The role of the message: `user`, `assistant` or `tool`.
    #[schema(value_type = String)]
    pub role: MessageRole,
    /// The text of the message.
    pub text: String,
    /// Tool calls, the call that a result belongs to, and attachments.
    #[schema(value_type = Vec<Object>)]
    pub parts: Vec<MessagePart>,
    /// Who or what wrote the message: `user`, `agent:<id>`, `agent:<instance>/<id>`, `cron`, `hook` or `system`.
    #[schema(value_type = String)]
    pub origin: MessageOrigin,
    /// The channel the message came from.
    pub channel: String,
    /// Whether the message is delivered to its channel.
    pub deliver: bool,
    /// Additional data, depending on the message.
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Value>,
    /// The turn that the message belongs to.
    #[schema(value_type = String)]
    pub turn_id: TurnId,
    /// When the message was stored.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TranscriptQuery {
    /// Only messages after this position.
    pub after: Option<i64>,
    /// Page size. At most 1000, default 200.
    #[param(minimum = 1)]
    pub limit: Option<usize>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TranscriptPage {
    /// The session.
    #[schema(value_type = String)]
    pub session_key: SessionKey,
    /// The messages of this page in order.
    pub messages: Vec<SessionMessageView>,
    /// `after` of the next page. Null on the last page.
    pub next_after: Option<i64>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct BacklogView {
    /// The session.
    #[schema(value_type = String)]
    pub session_key: SessionKey,
    /// Messages that wait for their turn to start.
    pub waiting: Vec<SessionMessageView>,
    /// Tasks that a newer message interrupted.
    pub interrupted: Vec<InterruptedTaskView>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = InterruptedTask)]
pub struct InterruptedTaskView {
    /// The message that started the task.
    #[schema(value_type = String)]
    pub message_id: MessageId,
    /// The turn that was interrupted.
    #[schema(value_type = String)]
    pub turn_id: TurnId,
    /// How often the task was interrupted.
    pub steer_count: u32,
    /// The text of the task.
    pub text: String,
    /// When the task was interrupted.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
}
