//! A model's answer while it is made: deltas to whoever watches, with nothing in them that must not be seen.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polyclaw_domain::provider::StreamDelta;
use polyclaw_domain::redact::RedactionStream;

use crate::audience::Listeners;
use crate::core::Engine;
use crate::draft::Drafting;
use crate::hub::{FrameKind, Speaker};
use crate::prompt::Context;
use crate::worker::Running;

pub(crate) struct Live<'a> {
    engine: &'a Engine,
    running: &'a Running,
    streams: Mutex<Streams>,
    drafting: Option<&'a Drafting>,
    /// Another conversation, and as whom it is told.
    listeners: Option<(&'a Listeners, Speaker)>,
    /// Which answer of the turn it is, the first being 0.
    step: usize,
}

struct Streams {
    text: RedactionStream,
    reasoning: RedactionStream,
}

/// What was shown of a call that failed no longer counts.
pub(crate) fn take_back(engine: &Engine, running: &Running, context: &Context) {
    if !running.note_shown(false) {
        return;
    }
    let claim = &running.claim;
    engine.hub.publish(&claim.session, FrameKind::Restarted { turn_id: claim.turn.clone() });
    if let Some(listeners) = &context.listeners {
        let speaker = listeners.speaker(&context.spec.agent_id, &context.spec.name);
        let begun = listeners.publish(&engine.hub, FrameKind::DelegateStarted(speaker));
        running.speak_elsewhere(Some((listeners.session().clone(), begun)));
    }
}

impl<'a> Live<'a> {
    /// A model call begins.
    pub fn new(
        engine: &'a Engine,
        running: &'a Running,
        context: &'a Context,
        drafting: Option<&'a Drafting>,
    ) -> Self {
        let redactor = engine.redactor();
        let text = RedactionStream::new(Arc::clone(&redactor));
        let streams = Mutex::new(Streams { text, reasoning: RedactionStream::new(redactor) });
        let speaker = |listeners: &'a Listeners| {
            (listeners, listeners.speaker(&context.spec.agent_id, &context.spec.name))
        };
        let listeners = context.listeners.as_ref().map(speaker);
        let live = Self { engine, running, streams, drafting, listeners, step: context.answers() };
        live.begin();
        live
    }

    /// What is said from here on is another answer.
    fn begin(&self) {
        self.running.say_anew();
        self.running.note_shown(false);
        let begun = self.tell(FrameKind::DelegateStarted);
        let there = self.listeners.as_ref().map(|(listeners, _)| listeners.session().clone());
        self.running.speak_elsewhere(there.zip(begun));
    }

    pub fn show(&self, delta: StreamDelta) {
        let mut streams = self.lock();
        match delta {
            StreamDelta::Text(text) => {
                // Thinking is over: what was held of it comes before the answer.
                self.reasoning(streams.reasoning.finish());
                self.text(streams.text.push(&text));
            }
            StreamDelta::Reasoning(text) => self.reasoning(streams.reasoning.push(&text)),
            StreamDelta::Restart => {
                let (_, _) = (streams.text.finish(), streams.reasoning.finish());
                self.drafting.inspect(|drafting| drafting.restart());
                self.begin();
                self.publish(FrameKind::Restarted { turn_id: self.running.claim.turn.clone() });
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
            self.running.say_more(&text);
            self.running.note_shown(true);
            self.tell(|speaker| FrameKind::DelegateDelta { speaker, text: text.clone() });
            self.publish(FrameKind::Delta {
                turn_id: self.running.claim.turn.clone(),
                step: self.step,
                text,
            });
        }
    }

    fn reasoning(&self, text: String) {
        if !text.is_empty() {
            self.running.note_shown(true);
            self.publish(FrameKind::Reasoning {
                turn_id: self.running.claim.turn.clone(),
                step: self.step,
                text,
            });
        }
    }

    fn publish(&self, kind: FrameKind) {
        self.engine.hub.publish(&self.running.claim.session, kind);
    }

    fn tell(&self, kind: impl FnOnce(Speaker) -> FrameKind) -> Option<u64> {
        let (listeners, speaker) = self.listeners.as_ref()?;
        Some(listeners.publish(&self.engine.hub, kind(speaker.clone())))
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
