//! The text of a turn: its stored steps, and the streamed text of the current call.

use polyclaw_domain::id::MessageId;
use polyclaw_domain::message::MessageRole;
use polyclaw_store::messages::SessionMessage;

/// The streamed text of a model call, used when a turn is cut off.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamedText {
    text: String,
    /// Text of a failed call or model. It counts until another one streams text.
    before: String,
    /// The step that stores or will store the text.
    step: Option<MessageId>,
}

impl StreamedText {
    /// Starts another call, or the same call with another model.
    pub fn begin_call(&mut self) {
        let text = std::mem::take(&mut self.text);
        match self.step.take() {
            Some(_) => self.before.clear(),
            None if text.trim().is_empty() => {}
            None => self.before = text,
        }
    }

    pub fn append(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Set before the step is stored, because a turn that is stopped meanwhile may or may not find it.
    pub fn set_step(&mut self, step: MessageId) {
        self.step = Some(step);
    }

    /// Returns the whole text, without duplicates and without the line that says why the turn ended early.
    pub fn full_text(&self, stored: &[SessionMessage]) -> String {
        let is_shown = |message: &&SessionMessage| {
            message.role == MessageRole::Assistant
                && message.meta.as_ref().is_none_or(|meta| meta["error"].is_null())
        };
        let steps = stored.iter().filter(is_shown).map(|message| message.text.as_str());
        let words = steps.chain([self.unstored_text(stored)]).filter(|text| !text.trim().is_empty());
        words.collect::<Vec<_>>().join("\n")
    }

    /// Returns the text that none of the stored steps contains.
    pub fn unstored_text(&self, stored: &[SessionMessage]) -> &str {
        let is_stored = |step: &MessageId| stored.iter().any(|message| message.id == *step);
        match &self.step {
            Some(step) if is_stored(step) => "",
            _ if self.text.trim().is_empty() => &self.before,
            _ => &self.text,
        }
    }
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::id::{AgentId, NodeId, SessionId, TraceId, TurnId};
    use polyclaw_domain::job::JobLane;
    use polyclaw_domain::session_key::SessionKey;
    use polyclaw_domain::time::Millis;
    use polyclaw_store::jobs::{TurnClaim, TurnJobKind};
    use serde_json::json;

    use super::*;

    #[derive(Clone, Copy)]
    enum Act {
        Begin,
        Say(&'static str),
        Store(&'static str),
    }

    use Act::{Begin, Say, Store};

    fn step(id: &str, text: &str) -> SessionMessage {
        let claim = TurnClaim {
            turn: TurnId::new("t"),
            session: SessionKey::from_parts(&AgentId::main(), &["x"]),
            agent: AgentId::main(),
            kind: TurnJobKind::Turn,
            lane: JobLane::Main,
            node: NodeId::new("n"),
            attempt: 1,
            blamed_deaths: 0,
            trace: TraceId::new("trace"),
            hop: 0,
            inputs: 1,
            was_held: false,
            has_person: true,
            stopping: false,
        };
        let message =
            SessionMessage::new_internal(MessageId::new(id), &claim, SessionId::new("s"), Millis(1));
        SessionMessage { role: MessageRole::Assistant, text: text.to_owned(), ..message }
    }

    #[test]
    fn streamed_text_has_each_word_once_at_any_interruption() {
        let cases: [(&[Act], &[&str], &str); 7] = [
            (&[Begin, Say("half")], &[], "half"),
            (&[Begin, Say("a"), Store("1")], &["1"], "a"),
            (&[Begin, Say("a"), Store("1")], &[], "a"),
            (&[Begin, Say("a"), Store("1"), Begin], &["1"], "a"),
            (&[Begin, Say("a"), Store("1"), Begin, Say("b")], &["1"], "a\nb"),
            (&[Begin, Say("a"), Begin, Begin], &[], "a"),
            (&[Begin, Say("a"), Begin, Say("b")], &[], "b"),
        ];
        for (acts, stored, whole) in cases {
            let mut reply = StreamedText::default();
            for act in acts {
                match act {
                    Begin => reply.begin_call(),
                    Say(text) => reply.append(text),
                    Store(id) => reply.set_step(MessageId::new(*id)),
                }
            }
            let mut stored: Vec<SessionMessage> = stored.iter().map(|id| step(id, "a")).collect();
            assert_eq!(reply.full_text(&stored), whole);
            stored.push(SessionMessage {
                meta: Some(json!({ "error": "stopped" })),
                ..step("end", "Stopped.")
            });
            assert_eq!(reply.full_text(&stored), whole, "why it ended is none of its words");
        }
    }
}
