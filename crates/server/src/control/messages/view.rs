//! Conversions to the response types of messages between instances.

use polyclaw_api::control::messages::{EnvelopeDetail, EnvelopeEventView, EnvelopeView};
use polyclaw_domain::redact::Redactor;
use polyclaw_store::registry::envelopes::{EnvelopeEvent, StoredEnvelope};
use serde_json::Value;

pub fn envelope_view(one: &StoredEnvelope) -> EnvelopeView {
    EnvelopeView {
        id: one.id.to_string(),
        from: one.from.to_string(),
        to: one.to.to_string(),
        from_name: one.from_name.clone(),
        to_name: one.to_name.clone(),
        r#type: one.kind.clone(),
        state: one.state.as_str().to_owned(),
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

/// Returns the payload as stored.
pub fn payload_json(one: &StoredEnvelope) -> Value {
    serde_json::from_str(&one.payload).unwrap_or(Value::Null)
}

pub fn envelope_event_view(event: &EnvelopeEvent) -> EnvelopeEventView {
    EnvelopeEventView {
        message_id: event.envelope.id.to_string(),
        kind: event.kind.as_str().to_owned(),
        state: event.state.as_str().to_owned(),
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

/// Builds the response. Stored payloads are redacted already, but another program may have changed the file.
pub fn envelope_detail(
    one: &StoredEnvelope,
    events: &[EnvelopeEvent],
    redactor: &Redactor,
) -> EnvelopeDetail {
    let mut payload = payload_json(one);
    redactor.redact_json(&mut payload);
    EnvelopeDetail {
        message: envelope_view(one),
        payload,
        events: events.iter().map(envelope_event_view).collect(),
    }
}
