//! Accepts messages.

use std::borrow::Cow;
use std::sync::Arc;

use polyclaw_domain::audit::AuditEntry;
use polyclaw_domain::envelope::{EnvelopeState, MAX_PAYLOAD_BYTES, MAX_WORD_LEN, is_kind};
use polyclaw_domain::id::EnvelopeId;
use polyclaw_domain::redact::{Redactor, quote_safely};
use polyclaw_store::registry::envelopes::{
    self, AcceptedEnvelope, EnvelopeDraft, EnvelopePayload, EnvelopeRefusal, EnvelopeVerdict,
};
use serde_json::Value;

use crate::access::ControlCaller;
use crate::audit;
use crate::control::Control;
use crate::error::{Error, Result};

/// A message as submitted by its sender.
#[derive(Clone, Debug)]
pub struct NewEnvelope {
    /// The sender. Operators must name it; an instance sends only for itself.
    pub from: Option<String>,
    pub to: String,
    pub kind: String,
    pub payload: Value,
    pub correlation: Option<String>,
    pub key: Option<String>,
    pub hop: u32,
    /// The trace of the turn that sends it.
    pub trace: Option<String>,
}

#[derive(Clone, Debug)]
pub enum SentEnvelope {
    New(AcceptedEnvelope),
    /// The idempotency key belongs to an earlier message.
    Repeated(EnvelopeId, EnvelopeState),
}

impl Control {
    /// Stores a message for its recipient. After this returns, a crash does not lose it.
    pub async fn send_message(&self, by: &ControlCaller, envelope: NewEnvelope) -> Result<SentEnvelope> {
        let from = resolve_sender(by, envelope.from.as_deref())?;
        let known = self.redactors_for(&from, &envelope).await;
        let draft = self.draft_envelope(from, envelope, &known)?;
        let entry = self.audit_entry(by, "message.send", &draft.id);
        let accepted = self.db.write(move |tx| {
            let verdict = envelopes::accept_envelope(tx, &draft)?;
            audit::append_optional(tx, accepted_entry(&verdict, &draft.kind, &entry).as_ref())?;
            Ok(verdict)
        });
        match accepted.await? {
            EnvelopeVerdict::Accepted(accepted, events) => {
                self.broker.publish_events(events);
                if accepted.auto_start {
                    self.broker.wake.notify_one();
                }
                Ok(SentEnvelope::New(accepted))
            }
            EnvelopeVerdict::Repeated(id, state) => Ok(SentEnvelope::Repeated(id, state)),
            EnvelopeVerdict::Refused(refused) => Err(refused.into()),
        }
    }

    fn draft_envelope(
        &self,
        from: String,
        envelope: NewEnvelope,
        known: &[Arc<Redactor>],
    ) -> Result<EnvelopeDraft> {
        if !is_kind(&envelope.kind) {
            return Err(Error::BadMessage(
                "type: must be words of letters, digits, - and _, joined by dots".to_owned(),
            ));
        }
        self.validate_word("type", Some(&envelope.kind), known)?;
        self.validate_word("correlation_id", envelope.correlation.as_deref(), known)?;
        self.validate_word("idempotency_key", envelope.key.as_deref(), known)?;
        self.validate_word("trace_id", envelope.trace.as_deref(), known)?;
        Ok(EnvelopeDraft {
            id: EnvelopeId::new(self.ids.next_id()),
            from,
            to: envelope.to,
            kind: envelope.kind,
            payload: self.redact_payload(envelope.payload, known),
            correlation: envelope.correlation,
            key: envelope.key,
            hop: envelope.hop,
            trace: envelope.trace,
            now: self.now(),
        })
    }

    /// Validates a word such as a key. Words are compared verbatim and cannot be redacted, so one that looks like a
    /// secret is rejected.
    fn validate_word(&self, name: &str, word: Option<&str>, known: &[Arc<Redactor>]) -> Result<()> {
        let Some(word) = word else { return Ok(()) };
        let fits = (1..=MAX_WORD_LEN).contains(&word.len()) && !word.chars().any(char::is_control);
        if !fits {
            return Err(Error::BadMessage(format!(
                "{name}: must be 1 to {MAX_WORD_LEN} bytes of plain text"
            )));
        }
        let looks_like_one = matches!(self.broker.redactor().redact_outbound_text(word), Cow::Owned(_));
        if looks_like_one || known.iter().any(|redactor| redactor.contains_secret(word)) {
            return Err(Error::BadMessage(format!("{name}: looks like a secret")));
        }
        Ok(())
    }

    fn redact_payload(&self, mut payload: Value, known: &[Arc<Redactor>]) -> EnvelopePayload {
        let written = payload.to_string();
        if written.len() > MAX_PAYLOAD_BYTES {
            return EnvelopePayload::TooLarge(written.len());
        }
        known.iter().for_each(|redactor| redactor.redact_values_in(&mut payload));
        self.broker.redactor().redact_payload(&mut payload);
        let json = payload.to_string();
        EnvelopePayload::Clean { redacted: json != written, json }
    }

    /// Shortens and redacts a failure reason for storage.
    pub(super) fn redact_text(&self, words: &str) -> String {
        const MAX_REASON_CHARS: usize = 500;
        let words: String = words.chars().filter(|c| !c.is_control()).take(MAX_REASON_CHARS).collect();
        self.broker.redactor().redact_outbound_text(&words).into_owned()
    }
}

/// Returns the audit entry of an accepted message.
fn accepted_entry(verdict: &EnvelopeVerdict, kind: &str, entry: &AuditEntry) -> Option<AuditEntry> {
    let EnvelopeVerdict::Accepted(accepted, _) = verdict else { return None };
    let detail = format!("{} → {}: {kind}", accepted.from.1, accepted.to.1);
    Some(AuditEntry { detail, ..entry.clone() })
}

/// Returns the sender. An instance sends for itself, an operator for any instance.
fn resolve_sender(by: &ControlCaller, named: Option<&str>) -> Result<String> {
    match (&by.instance, named) {
        (Some(own), Some(named)) if named != own.as_str() => Err(Error::ForeignSender),
        (Some(own), _) => Ok(own.to_string()),
        (None, Some(named)) => Ok(named.to_owned()),
        (None, None) => Err(Error::BadMessage("from: the sending instance is missing".to_owned())),
    }
}

impl From<EnvelopeRefusal> for Error {
    fn from(refused: EnvelopeRefusal) -> Self {
        match refused {
            EnvelopeRefusal::Unknown(word) => Self::UnknownInstance(quote_safely(&word)),
            EnvelopeRefusal::Archived(name) => Self::Archived(name),
            EnvelopeRefusal::TooLarge(bytes) => Self::PayloadTooLarge(bytes),
            EnvelopeRefusal::TooManyHops(hop) => Self::MessageLoops(hop),
            EnvelopeRefusal::NoRule { from, to, kind } => Self::RouteDenied { from, to, kind },
        }
    }
}
