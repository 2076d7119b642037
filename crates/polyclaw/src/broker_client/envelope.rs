//! A message as the control plane delivers it, and its form in a session.

use polyclaw_api::control::messages::EnvelopeView;
use polyclaw_api::control::pending::PendingEnvelope;
use polyclaw_domain::channel::{ChatAddress, INTERNAL_CHANNEL};
use polyclaw_domain::envelope::{HANDOFF_KIND, RESPONSE_KIND, RESULT_KIND, is_answer_kind};
use polyclaw_domain::id::{AgentId, TraceId};
use polyclaw_domain::instance::InstanceName;
use polyclaw_domain::message::MessageOrigin;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::ingress::{InternalMessage, MessageProvenance, RelayInfo, RelayKind};
use serde_json::{Value, json};

use super::INSTANCE_CHANNEL;

/// Placeholder if the sender did not name the agent or instance.
const UNKNOWN_AGENT: &str = "unknown";

#[derive(Clone, Debug)]
pub struct LeasedEnvelope {
    pub id: String,
    pub lease: String,
    pub from: String,
    pub from_name: Option<String>,
    pub kind: String,
    pub correlation_id: Option<String>,
    pub hop_count: u32,
    pub trace_id: Option<String>,
    pub payload: Value,
}

impl From<PendingEnvelope> for LeasedEnvelope {
    fn from(PendingEnvelope { message, payload, lease, .. }: PendingEnvelope) -> Self {
        let EnvelopeView { id, from, from_name, r#type, correlation_id, hop_count, trace_id, .. } = message;
        Self { id, lease, from, from_name, kind: r#type, correlation_id, hop_count, trace_id, payload }
    }
}

impl LeasedEnvelope {
    pub fn is_answer(&self) -> bool {
        is_answer_kind(&self.kind)
    }

    /// Returns the ID that ties a message to everything that follows from it.
    pub fn thread_id(&self) -> &str {
        self.correlation_id.as_deref().unwrap_or(&self.id)
    }

    /// Returns the trace of the turn that sent the message. A message from an operator starts a new trace.
    pub fn trace(&self) -> TraceId {
        let start_run = || format!("{INSTANCE_CHANNEL}-{}", self.thread_id());
        TraceId::new(self.trace_id.clone().unwrap_or_else(start_run))
    }

    fn payload_text(&self, name: &str) -> Option<&str> {
        self.payload[name].as_str().filter(|word| !word.trim().is_empty())
    }

    /// Returns the error of the failed turn, if the message is an answer to it.
    pub fn error(&self) -> Option<&str> {
        self.payload_text("error").filter(|_| self.is_answer())
    }

    /// Returns the agent that the message is addressed to, if it names one.
    pub fn target_agent(&self) -> Option<AgentId> {
        AgentId::parse(self.payload_text("to_agent")?).ok()
    }

    pub fn origin(&self) -> MessageOrigin {
        let named = self.from_name.as_deref().filter(|name| InstanceName::parse(name).is_ok());
        let agent = self.payload_text("agent").filter(|agent| AgentId::parse(agent).is_ok());
        MessageOrigin::Remote {
            instance: named.unwrap_or(UNKNOWN_AGENT).to_owned(),
            agent: agent.unwrap_or(UNKNOWN_AGENT).to_owned(),
        }
    }

    /// Returns the session of this exchange. Each exchange has its own.
    pub fn session_key(&self, agent: &AgentId) -> SessionKey {
        SessionKey::for_direct(agent, INSTANCE_CHANNEL, &format!("{}/{}", self.from, self.thread_id()))
    }

    /// Returns the relay info for an agent here. The sending session is represented by a key of this instance.
    pub fn relay_info(&self, agent: &AgentId, way: RelayKind) -> RelayInfo {
        let from = SessionKey::from_parts(agent, &[INSTANCE_CHANNEL, &self.from]);
        RelayInfo { from, hop: self.hop_count, trace: self.trace(), kind: way }
    }

    /// Builds the internal message. Its idempotency key makes a repeated delivery harmless. Replies are delivered to
    /// `channel`, unless that is internal.
    pub fn to_internal_message(
        &self,
        channel: ChatAddress,
        provenance: MessageProvenance,
    ) -> InternalMessage {
        InternalMessage {
            deliver: channel.channel != INTERNAL_CHANNEL,
            channel,
            idempotency_key: format!("{INSTANCE_CHANNEL}:{}", self.id),
            meta: Some(self.meta()),
            provenance,
        }
    }

    /// Returns where the answer goes. The account is the answer's type: a result for a task, else a response.
    pub fn reply_address(&self) -> ChatAddress {
        ChatAddress {
            channel: INSTANCE_CHANNEL.to_owned(),
            account: if self.kind == HANDOFF_KIND { RESULT_KIND } else { RESPONSE_KIND }.to_owned(),
            peer: self.from.clone(),
            thread: Some(self.thread_id().to_owned()),
        }
    }

    /// Returns the message's text, or its whole payload.
    pub fn text(&self) -> String {
        let text = ["text", "task", "message"].iter().find_map(|name| self.payload_text(name));
        match text {
            Some(text) => text.to_owned(),
            None => format!("{}: {}", self.kind, self.payload),
        }
    }

    fn meta(&self) -> Value {
        json!({
            "kind": "instance_message",
            "message_id": self.id,
            "type": self.kind,
            "from": self.from,
            "correlation_id": self.correlation_id,
            "hop": self.hop_count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(kind: &str, payload: Value) -> LeasedEnvelope {
        LeasedEnvelope {
            id: "m".to_owned(),
            lease: "l".to_owned(),
            from: "f".to_owned(),
            from_name: Some("lab".to_owned()),
            kind: kind.to_owned(),
            correlation_id: None,
            hop_count: 0,
            trace_id: None,
            payload,
        }
    }

    #[test]
    fn envelope_is_shown_to_session_with_text_and_origin() {
        for (payload, text, origin) in [
            (json!({ "text": "hi", "agent": "main" }), "hi", "agent:lab/main"),
            (json!({ "task": "look", "agent": "a/b" }), "look", "agent:lab/unknown"),
            (json!({ "n": 1 }), "note: {\"n\":1}", "agent:lab/unknown"),
            (json!("bare"), "note: \"bare\"", "agent:lab/unknown"),
        ] {
            let envelope = letter("note", payload);
            assert_eq!((envelope.text().as_str(), envelope.origin().to_string().as_str()), (text, origin));
            assert_eq!(
                MessageOrigin::parse(origin),
                Some(envelope.origin()),
                "it is read back from where it is stored"
            );
        }
    }

    #[test]
    fn envelope_keeps_its_trace_or_starts_a_new_one() {
        let plain = letter("note", json!({}));
        assert_eq!(plain.trace(), TraceId::new("cp-m"));
        let traced = LeasedEnvelope { trace_id: Some("t1".to_owned()), ..plain };
        assert_eq!(traced.trace(), TraceId::new("t1"));
    }

    #[test]
    fn handoff_is_answered_with_result_and_others_with_response() {
        assert_eq!(letter(HANDOFF_KIND, json!({})).reply_address().account, RESULT_KIND);
        assert_eq!(letter("note", json!({})).reply_address().account, RESPONSE_KIND);
        let again = LeasedEnvelope { correlation_id: Some("c".to_owned()), ..letter("note", json!({})) };
        assert_eq!((again.thread_id(), letter("note", json!({})).thread_id()), ("c", "m"));
    }
}
