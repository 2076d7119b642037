//! Messages between instances and what happens to them, as they are shown.

use polyclaw_domain::envelope;
use polyclaw_domain::redact::Redactor;
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::envelopes::{EnvelopeEvent, StoredEnvelope};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A message as lists show it: without what it says.
#[derive(Serialize, ToSchema)]
#[schema(as = Envelope)]
pub struct EnvelopeView {
    id: String,
    /// The ids of both instances.
    from: String,
    to: String,
    /// Their names now; null of one that was deleted.
    from_name: Option<String>,
    to_name: Option<String>,
    r#type: String,
    /// `queued`, `delivered`, `acknowledged`, `failed` (tried again) or `dead_letter`.
    state: &'static str,
    correlation_id: Option<String>,
    /// The trace of the turn that wrote it, which goes on where it arrives.
    trace_id: Option<String>,
    idempotency_key: Option<String>,
    hop_count: u32,
    attempts: u32,
    max_retries: u32,
    /// Something in it was a secret and was taken out.
    redacted: bool,
    /// Why it was not taken up the last time.
    error: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Millis,
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

/// What a message says, as it is stored.
pub fn payload_json(one: &StoredEnvelope) -> Value {
    serde_json::from_str(&one.payload).unwrap_or(Value::Null)
}

#[derive(Serialize, ToSchema)]
pub struct EnvelopeDetail {
    #[serde(flatten)]
    message: EnvelopeView,
    #[schema(value_type = Object)]
    payload: Value,
    /// All that happened to it, in order.
    events: Vec<EnvelopeEventView>,
}

/// Something that happened to a message. It never holds what the message says.
#[derive(Serialize, ToSchema)]
pub struct EnvelopeEventView {
    message_id: String,
    /// `created`, `queued`, `delivery_attempted`, `delivered`, `acknowledged`, `failed`, `dead_lettered` or `replayed`.
    kind: &'static str,
    /// The state it left the message in.
    state: &'static str,
    detail: Option<String>,
    /// The ids of both instances.
    from: String,
    to: String,
    /// Their names now; null of one that was deleted.
    from_name: Option<String>,
    to_name: Option<String>,
    message_type: String,
    correlation_id: Option<String>,
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
    /// What is stored was cleaned before; what another program wrote into the file was not.
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
    Queued,
    Delivered,
    Acknowledged,
    Failed,
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
