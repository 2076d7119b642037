//! Streams a model's answer to live clients, with secrets redacted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polyclaw_domain::provider::StreamDelta;
use polyclaw_domain::redact::RedactionStream;

use crate::core::Engine;
use crate::draft::DraftStream;
use crate::hub::{DelegateSpeaker, FrameKind};
use crate::prompt::TurnContext;
use crate::stream_mirror::StreamMirror;
use crate::worker::RunningTurn;

pub(crate) struct LiveReply<'a> {
    engine: &'a Engine,
    running: &'a RunningTurn,
    streams: Mutex<LiveStreams>,
    draft_stream: Option<&'a DraftStream>,
    /// Conversation that mirrors the stream, and the speaker shown there.
    mirror: Option<(&'a StreamMirror, DelegateSpeaker)>,
    /// Index of this answer in the turn, from 0.
    step: usize,
}

struct LiveStreams {
    text: RedactionStream,
    reasoning: RedactionStream,
}

/// Tells clients to discard the streamed text of a failed call.
pub(crate) fn retract_streamed(engine: &Engine, running: &RunningTurn, context: &TurnContext) {
    if !running.swap_shown(false) {
        return;
    }
    let claim = &running.claim;
    engine.hub.publish(&claim.session, FrameKind::Restarted { turn_id: claim.turn.clone() });
    if let Some(listeners) = &context.mirror {
        let speaker = listeners.speaker(&context.spec.agent_id, &context.spec.name);
        let start = listeners.publish(&engine.hub, FrameKind::DelegateStarted(speaker));
        running.set_mirror_position(Some((listeners.session().clone(), start)));
    }
}

impl<'a> LiveReply<'a> {
    /// Starts streaming a model call.
    pub fn new(
        engine: &'a Engine,
        running: &'a RunningTurn,
        context: &'a TurnContext,
        drafting: Option<&'a DraftStream>,
    ) -> Self {
        let redactor = engine.redactor();
        let text = RedactionStream::new(Arc::clone(&redactor));
        let streams = Mutex::new(LiveStreams { text, reasoning: RedactionStream::new(redactor) });
        let speaker = |listeners: &'a StreamMirror| {
            (listeners, listeners.speaker(&context.spec.agent_id, &context.spec.name))
        };
        let listeners = context.mirror.as_ref().map(speaker);
        let live = Self {
            engine,
            running,
            streams,
            draft_stream: drafting,
            mirror: listeners,
            step: context.answer_count(),
        };
        live.begin_answer();
        live
    }

    /// Starts a new answer; text so far no longer counts.
    fn begin_answer(&self) {
        self.running.begin_streamed_text();
        self.running.swap_shown(false);
        let start = self.publish_to_mirror(FrameKind::DelegateStarted);
        let there = self.mirror.as_ref().map(|(listeners, _)| listeners.session().clone());
        self.running.set_mirror_position(there.zip(start));
    }

    pub fn show_delta(&self, delta: StreamDelta) {
        let mut streams = self.lock();
        match delta {
            StreamDelta::Text(text) => {
                // Reasoning is over: flush its held-back text before the answer.
                self.emit_reasoning(streams.reasoning.finish());
                self.emit_text(streams.text.push(&text));
            }
            StreamDelta::Reasoning(text) => self.emit_reasoning(streams.reasoning.push(&text)),
            StreamDelta::Restart => {
                let (_, _) = (streams.text.finish(), streams.reasoning.finish());
                self.draft_stream.inspect(|drafting| drafting.clear_text());
                self.begin_answer();
                self.publish(FrameKind::Restarted { turn_id: self.running.claim.turn.clone() });
            }
        }
    }

    /// Emits the text that was held back for redaction.
    pub fn flush(&self) {
        let mut streams = self.lock();
        self.emit_reasoning(streams.reasoning.finish());
        self.emit_text(streams.text.finish());
    }

    fn emit_text(&self, text: String) {
        if !text.is_empty() {
            self.draft_stream.inspect(|drafting| drafting.push_text(&text));
            self.running.append_streamed_text(&text);
            self.running.swap_shown(true);
            self.publish_to_mirror(|speaker| FrameKind::DelegateDelta { speaker, text: text.clone() });
            self.publish(FrameKind::Delta {
                turn_id: self.running.claim.turn.clone(),
                step: self.step,
                text,
            });
        }
    }

    fn emit_reasoning(&self, text: String) {
        if !text.is_empty() {
            self.running.swap_shown(true);
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

    fn publish_to_mirror(&self, kind: impl FnOnce(DelegateSpeaker) -> FrameKind) -> Option<u64> {
        let (listeners, speaker) = self.mirror.as_ref()?;
        Some(listeners.publish(&self.engine.hub, kind(speaker.clone())))
    }

    fn lock(&self) -> MutexGuard<'_, LiveStreams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
