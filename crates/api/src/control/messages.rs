//! Messages between instances: send, list and replay. Delivery to recipients is in `pending`.

use polyclaw_domain::envelope::EnvelopeState;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct EnvelopeList {
    /// The messages of this page.
    pub messages: Vec<EnvelopeView>,
    /// The cursor of the next page. Null on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListEnvelopesQuery {
    /// Only messages from this instance, by id or name.
    pub from: Option<String>,
    /// Only messages to this instance, by id or name.
    pub to: Option<String>,
    /// Only messages from or to this instance, by id or name.
    pub instance: Option<String>,
    /// Only messages of this type, or of all types below one: `task.*`.
    pub r#type: Option<String>,
    /// Only messages in this state. `state` is an alias.
    #[param(inline)]
    pub status: Option<EnvelopeStateName>,
    /// Only messages in this state. An alias of `status`.
    #[param(inline)]
    pub state: Option<EnvelopeStateName>,
    /// Only messages with this correlation id, and the message that has it as its own id. They are sorted oldest
    /// first; all other lists are newest first.
    pub correlation_id: Option<String>,
    /// Only messages sent after this time.
    #[param(value_type = Option<String>, format = DateTime)]
    pub after: Option<Millis>,
    /// Only messages sent before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    pub before: Option<Millis>,
    /// Only messages with this hop count.
    pub hop_count: Option<u8>,
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    pub limit: Option<usize>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnvelopeDirection {
    /// Received messages.
    In,
    /// Sent messages.
    Out,
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListInstanceEnvelopesQuery {
    /// `in` for messages the instance received, `out` for messages it sent.
    #[param(inline)]
    pub direction: EnvelopeDirection,
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    pub limit: Option<usize>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListDeadLettersQuery {
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    pub limit: Option<usize>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewEnvelopeBody {
    /// The sending instance, by id or name. Required for operators; an instance can only send for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The receiving instance, by id or name.
    pub to: String,
    /// The type: words joined by dots, such as `task.handoff`.
    pub r#type: String,
    /// The content, at most 64 KiB as JSON.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub payload: Value,
    /// An id shared by a message and everything that follows from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Messages with the same key within a day are stored only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// How many instances the message has passed through, as far as the sender knows. The broker raises a value that
    /// is too low.
    #[serde(default)]
    #[schema(required = false)]
    pub hop_count: u32,
    /// The trace of the turn that sends the message. It continues in the receiving instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct EnvelopeReceipt {
    /// The id of the message.
    pub id: String,
    /// The state of the message.
    pub state: String,
    /// Whether the key was used before. The response then describes the first message.
    pub deduplicated: bool,
    /// Whether secrets were removed from the payload. Null for a repeated message.
    pub redacted: Option<bool>,
    /// The hop count after acceptance. Null for a repeated message.
    pub hop_count: Option<u32>,
    /// When the message expires. Null for a repeated message.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Millis>,
}

/// A message in a list, without its payload.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Envelope)]
pub struct EnvelopeView {
    /// The id of the message.
    pub id: String,
    /// The id of the sending instance.
    pub from: String,
    /// The id of the receiving instance.
    pub to: String,
    /// The current name of the sender. Null if it was deleted.
    pub from_name: Option<String>,
    /// The current name of the recipient. Null if it was deleted.
    pub to_name: Option<String>,
    /// The type, such as `task.handoff`.
    pub r#type: String,
    /// `queued`, `delivered`, `acknowledged`, `failed` (will be retried) or `dead_letter`.
    pub state: String,
    /// An id shared by a message and everything that follows from it.
    pub correlation_id: Option<String>,
    /// The trace of the turn that sent the message. It continues in the receiving instance.
    pub trace_id: Option<String>,
    /// The sender's idempotency key.
    pub idempotency_key: Option<String>,
    /// How many instances the message has passed through.
    pub hop_count: u32,
    /// How often delivery was attempted.
    pub attempts: u32,
    /// How often delivery is retried before it is given up.
    pub max_retries: u32,
    /// Whether secrets were removed from the payload.
    pub redacted: bool,
    /// Why the last delivery failed.
    pub error: Option<String>,
    /// When the message was sent.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
    /// When the message was last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Millis,
    /// When delivery is given up.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Millis,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct EnvelopeDetail {
    #[serde(flatten)]
    pub message: EnvelopeView,
    /// The content of the message.
    #[schema(value_type = Object)]
    pub payload: Value,
    /// The events of the message in order.
    pub events: Vec<EnvelopeEventView>,
}

/// An event of a message. It never contains the payload.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct EnvelopeEventView {
    /// The id of the message.
    pub message_id: String,
    /// `created`, `queued`, `delivery_attempted`, `delivered`, `acknowledged`, `failed`, `dead_lettered` or
    /// `replayed`.
    pub kind: String,
    /// The state of the message after the event.
    pub state: String,
    /// Details, such as the reason of a failure.
    pub detail: Option<String>,
    /// The id of the sending instance.
    pub from: String,
    /// The id of the receiving instance.
    pub to: String,
    /// The current name of the sender. Null if it was deleted.
    pub from_name: Option<String>,
    /// The current name of the recipient. Null if it was deleted.
    pub to_name: Option<String>,
    /// The type of the message.
    pub message_type: String,
    /// The correlation id of the message.
    pub correlation_id: Option<String>,
    /// When the event happened.
    #[schema(value_type = String, format = DateTime)]
    pub at: Millis,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnvelopeStateName {
    /// Waiting for delivery.
    Queued,
    /// Leased to the recipient.
    Delivered,
    /// Processed by the recipient.
    Acknowledged,
    /// Delivery failed and will be retried.
    Failed,
    /// Delivery was given up.
    DeadLetter,
}

impl From<EnvelopeStateName> for EnvelopeState {
    fn from(word: EnvelopeStateName) -> Self {
        match word {
            EnvelopeStateName::Queued => Self::Queued,
            EnvelopeStateName::Delivered => Self::Delivered,
            EnvelopeStateName::Acknowledged => Self::Acknowledged,
            EnvelopeStateName::Failed => Self::Failed,
            EnvelopeStateName::DeadLetter => Self::DeadLetter,
        }
    }
}
