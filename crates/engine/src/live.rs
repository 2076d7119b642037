//! A model's answer while it is made: deltas to whoever watches, with nothing in them that must not be seen.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polyclaw_domain::provider::Delta;
use polyclaw_domain::redact::{Redactor, Stream};
use polyclaw_store::jobs::Claim;

use crate::core::Engine;
use crate::draft::Drafting;
use crate::hub::FrameKind;

pub(crate) struct Live<'a> {
    engine: &'a Engine,
    claim: &'a Claim,
    streams: Mutex<Streams>,
    drafting: Option<&'a Drafting>,
}

struct Streams {
    text: Stream,
    reasoning: Stream,
}

impl<'a> Live<'a> {
    pub fn new(
        engine: &'a Engine,
        claim: &'a Claim,
        redactor: Arc<Redactor>,
        drafting: Option<&'a Drafting>,
    ) -> Self {
        let text = Stream::new(Arc::clone(&redactor));
        let streams = Mutex::new(Streams { text, reasoning: Stream::new(redactor) });
        Self { engine, claim, streams, drafting }
    }

    pub fn show(&self, delta: Delta) {
        let mut streams = self.lock();
        match delta {
            Delta::Text(text) => {
                // Thinking is over: what was held of it comes before the answer.
                self.reasoning(streams.reasoning.finish());
                self.text(streams.text.push(&text));
            }
            Delta::Reasoning(text) => self.reasoning(streams.reasoning.push(&text)),
            Delta::Restart => {
                let (_, _) = (streams.text.finish(), streams.reasoning.finish());
                self.drafting.inspect(|drafting| drafting.restart());
                self.publish(FrameKind::Restarted { turn_id: self.claim.turn.clone() });
            }
        }
    }

    /// What was held back, now that nothing follows.
    pub fn end(&self) {
        let mut streams = self.lock();
        self.reasoning(streams.reasoning.finish());
        self.text(streams.text.finish());
    }

    fn text(&self, text: String) {
        if !text.is_empty() {
            self.drafting.inspect(|drafting| drafting.add(&text));
            self.publish(FrameKind::Delta { turn_id: self.claim.turn.clone(), text });
        }
    }

    fn reasoning(&self, text: String) {
        if !text.is_empty() {
            self.publish(FrameKind::Reasoning { turn_id: self.claim.turn.clone(), text });
        }
    }

    fn publish(&self, kind: FrameKind) {
        self.engine.hub.publish(&self.claim.session, kind);
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
