//! Response types of messages between instances.

use polyclaw_domain::envelope;
use polyclaw_domain::redact::Redactor;
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::envelopes::{EnvelopeEvent, StoredEnvelope};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A message in a list, without its payload.
#[derive(Serialize, ToSchema)]
#[schema(as = Envelope)]
pub struct EnvelopeView {
    /// The id of the message.
    id: String,
    /// The id of the sending instance.
    from: String,
    /// The id of the receiving instance.
    to: String,
    /// The current name of the sender. Null if it was deleted.
    from_name: Option<String>,
    /// The current name of the recipient. Null if it was deleted.
    to_name: Option<String>,
    /// The type, such as `task.handoff`.
    r#type: String,
    /// `queued`, `delivered`, `acknowledged`, `failed` (will be retried) or `dead_letter`.
    state: &'static str,
    /// An id shared by a message and everything that follows from it.
    correlation_id: Option<String>,
    /// The trace of the turn that sent the message. It continues in the receiving instance.
    trace_id: Option<String>,
    /// The sender's idempotency key.
    idempotency_key: Option<String>,
    /// How many instances the message has passed through.
    hop_count: u32,
    /// How often delivery was attempted.
    attempts: u32,
    /// How often delivery is retried before it is given up.
    max_retries: u32,
    /// Whether secrets were removed from the payload.
    redacted: bool,
    /// Why the last delivery failed.
    error: Option<String>,
    /// When the message was sent.
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    /// When the message was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Millis,
    /// When delivery is given up.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Millis,
}

impl From<&StoredEnvelope> for EnvelopeView {
    fn from(one: &StoredEnvelope) -> Self {
        Self {
            id: one.id.to_string(),
            from: one.from.to_string(),
            to: one.to.to_string(),
            from_name: one.from_name.clone(),
            to_name: one.to_name.clone(),
            r#type: one.kind.clone(),
            state: one.state.as_str(),
            correlation_id: one.correlation.clone(),
            trace_id: one.trace.clone(),
            idempotency_key: one.key.clone(),
            hop_count: one.hop,
            attempts: one.attempts,
            max_retries: one.max_retries,
            redacted: one.redacted,
            error: one.error.clone(),
            created_at: one.created_at,
            updated_at: one.updated_at,
            expires_at: one.expires_at,
        }
    }
}

/// Returns the payload as stored.
pub fn payload_json(one: &StoredEnvelope) -> Value {
    serde_json::from_str(&one.payload).unwrap_or(Value::Null)
}

#[derive(Serialize, ToSchema)]
pub struct EnvelopeDetail {
    #[serde(flatten)]
    message: EnvelopeView,
    /// The content of the message.
    #[schema(value_type = Object)]
    payload: Value,
    /// The events of the message in order.
    events: Vec<EnvelopeEventView>,
}

/// An event of a message. It never contains the payload.
#[derive(Serialize, ToSchema)]
pub struct EnvelopeEventView {
    /// The id of the message.
    message_id: String,
    /// `created`, `queued`, `delivery_attempted`, `delivered`, `acknowledged`, `failed`, `dead_lettered` or
    /// `replayed`.
    kind: &'static str,
    /// The state of the message after the event.
    state: &'static str,
    /// Details, such as the reason of a failure.
    detail: Option<String>,
    /// The id of the sending instance.
    from: String,
    /// The id of the receiving instance.
    to: String,
    /// The current name of the sender. Null if it was deleted.
    from_name: Option<String>,
    /// The current name of the recipient. Null if it was deleted.
    to_name: Option<String>,
    /// The type of the message.
    message_type: String,
    /// The correlation id of the message.
    correlation_id: Option<String>,
    /// When the event happened.
    #[schema(value_type = String, format = DateTime)]
    at: Millis,
}

impl From<&EnvelopeEvent> for EnvelopeEventView {
    fn from(event: &EnvelopeEvent) -> Self {
        Self {
            message_id: event.envelope.id.to_string(),
            kind: event.kind.as_str(),
            state: event.state.as_str(),
            detail: event.detail.clone(),
            from: event.envelope.from.to_string(),
            to: event.envelope.to.to_string(),
            from_name: event.envelope.from_name.clone(),
            to_name: event.envelope.to_name.clone(),
            message_type: event.envelope.kind.clone(),
            correlation_id: event.envelope.correlation.clone(),
            at: event.at,
        }
    }
}

impl EnvelopeDetail {
    /// Builds the response. Stored payloads are redacted already, but another program may have changed the file.
    pub fn from_envelope(one: &StoredEnvelope, events: &[EnvelopeEvent], redactor: &Redactor) -> Self {
        let mut payload = payload_json(one);
        redactor.redact_json(&mut payload);
        Self {
            message: EnvelopeView::from(one),
            payload,
            events: events.iter().map(EnvelopeEventView::from).collect(),
        }
    }
}

#[derive(Clone, Copy, Deserialize, Serialize, ToSchema)]
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

impl From<EnvelopeStateName> for envelope::EnvelopeState {
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
