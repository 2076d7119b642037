//! What is being said in a session right now, whole: for readers that come in the middle of it. Pieces from before they
//! came are nowhere else, until what they are pieces of is stored.

use std::collections::HashMap;
use std::sync::Arc;

use polyclaw_domain::id::{RunId, TurnId};
use polyclaw_domain::session_key::SessionKey;

use super::{DelegateSpeaker, FrameKind, HubFrame};

#[derive(Default)]
pub(super) struct PartialTexts(HashMap<SessionKey, Vec<PartialText>>);

/// What one of those who speak has said so far.
struct PartialText {
    by: PartialTextAuthor,
    /// Nothing yet while it is only known who will speak, or while they think.
    text: String,
    /// Of the first frame that belongs to it.
    first: u64,
    /// Of the last frame it is made of.
    seq: u64,
}

#[derive(Clone)]
enum PartialTextAuthor {
    /// The agent of the session, in an answer of a turn.
    Own(TurnId, usize),
    /// Another agent, for a turn that waits for it.
    Other(DelegateSpeaker),
}

impl PartialTextAuthor {
    fn is_own(&self, turn: &TurnId) -> bool {
        matches!(self, Self::Own(own, _) if own == turn)
    }

    /// Whether these are the words that a piece belongs to.
    fn matches_piece(&self, piece: &FrameKind) -> bool {
        match (self, piece) {
            (
                Self::Own(turn, own),
                FrameKind::Delta { turn_id, step, .. } | FrameKind::Reasoning { turn_id, step, .. },
            ) => turn == turn_id && own == step,
            (Self::Other(own), FrameKind::DelegateDelta { speaker, .. }) => own.run_id == speaker.run_id,
            _ => false,
        }
    }

    fn is_run(&self, run: &RunId) -> bool {
        matches!(self, Self::Other(speaker) if speaker.run_id == *run)
    }

    /// By the turn or for it.
    fn is_of(&self, turn: &TurnId) -> bool {
        match self {
            Self::Own(own, _) => own == turn,
            Self::Other(speaker) => speaker.turn_id == *turn,
        }
    }
}

impl PartialTexts {
    pub fn apply_frame(&mut self, frame: &HubFrame) {
        let session = &frame.session_key;
        match &frame.kind {
            FrameKind::Delta { turn_id, step, text } => {
                self.add_own(frame, text, PartialTextAuthor::Own(turn_id.clone(), *step));
            }
            FrameKind::Reasoning { turn_id, step, .. } => {
                self.add_own(frame, "", PartialTextAuthor::Own(turn_id.clone(), *step));
            }
            FrameKind::DelegateDelta { speaker, text } => {
                self.append_text(frame, text, PartialTextAuthor::Other(speaker.clone()));
            }
            FrameKind::DelegateStarted(speaker) => {
                self.remove_matching(session, |words| words.by.is_run(&speaker.run_id));
                self.append_text(frame, "", PartialTextAuthor::Other(speaker.clone()));
            }
            FrameKind::DelegateEnded { speaker, .. } => {
                self.remove_matching(session, |words| words.by.is_run(&speaker.run_id));
            }
            // What was said before a tool is asked for is stored with the call.
            FrameKind::Started { turn_id, .. }
            | FrameKind::Restarted { turn_id }
            | FrameKind::ToolStarted { turn_id, .. }
            | FrameKind::ToolEnded { turn_id, .. }
            | FrameKind::ApprovalAsked { turn_id, .. } => {
                self.remove_matching(session, |words| words.by.is_own(turn_id));
            }
            FrameKind::Ended { turn_id, .. } => self.drop_turn(session, turn_id),
            _ => {}
        }
    }

    /// Nobody here drives the turn any more, however that came about.
    pub fn drop_turn(&mut self, session: &SessionKey, turn: &TurnId) {
        self.remove_matching(session, |words| words.by.is_of(turn));
    }

    /// Nobody says more of what began with this frame.
    pub fn drop_from_frame(&mut self, session: &SessionKey, first: u64) {
        self.remove_matching(session, |words| words.first == first);
    }

    /// Whether a frame is a piece of what is told whole.
    pub fn contains_piece(&self, frame: &HubFrame) -> bool {
        let tells = !matches!(frame.kind, FrameKind::Reasoning { .. });
        let mut text = self.0.get(&frame.session_key).into_iter().flatten();
        tells && text.any(|words| words.first <= frame.seq && words.by.matches_piece(&frame.kind))
    }

    fn add_own(&mut self, frame: &HubFrame, text: &str, by: PartialTextAuthor) {
        // Once the next answer begins, the one before is stored.
        let is_over = |words: &PartialText| {
            matches!(words.by, PartialTextAuthor::Own(..)) && !words.by.matches_piece(&frame.kind)
        };
        self.remove_matching(&frame.session_key, is_over);
        self.append_text(frame, text, by);
    }

    fn append_text(&mut self, frame: &HubFrame, text: &str, by: PartialTextAuthor) {
        let mut reply = self.0.get_mut(&frame.session_key).into_iter().flatten();
        if let Some(words) = reply.find(|words| words.by.matches_piece(&frame.kind)) {
            if !text.is_empty() {
                words.text.push_str(text);
                words.seq = frame.seq;
            }
            return;
        }
        let words = PartialText { by, text: text.to_owned(), first: frame.seq, seq: frame.seq };
        self.0.entry(frame.session_key.clone()).or_default().push(words);
    }

    fn remove_matching(&mut self, session: &SessionKey, is_over: impl Fn(&PartialText) -> bool) {
        let Some(messages) = self.0.get_mut(session) else { return };
        messages.retain(|words| !is_over(words));
        if messages.is_empty() {
            self.0.remove(session);
        }
    }

    /// Frames that tell all of it: each begins by taking back what a reader may have heard of it.
    pub fn catch_up_frames(&self, session: &SessionKey) -> Vec<Arc<HubFrame>> {
        let reply = self.0.get(session).into_iter().flatten().filter(|words| !words.text.is_empty());
        let text_of = |PartialText { by, text, first, seq }: &PartialText| {
            let (seq, text) = (*seq, text.clone());
            let (restarted, all) = match by.clone() {
                PartialTextAuthor::Own(turn_id, step) => (
                    FrameKind::Restarted { turn_id: turn_id.clone() },
                    FrameKind::Delta { turn_id, step, text },
                ),
                PartialTextAuthor::Other(speaker) => {
                    (FrameKind::DelegateStarted(speaker.clone()), FrameKind::DelegateDelta { speaker, text })
                }
            };
            // Numbers that were: a reader that asks again after the first has heard none of it, after the second all.
            [(first.saturating_sub(1), restarted), (seq, all)]
        };
        let mut frames: Vec<_> = reply.flat_map(text_of).collect();
        frames.sort_by_key(|(seq, _)| *seq);
        let frame = |(seq, kind)| Arc::new(HubFrame { seq, session_key: session.clone(), kind });
        frames.into_iter().map(frame).collect()
    }
}
