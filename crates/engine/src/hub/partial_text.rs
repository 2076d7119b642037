//! Complete text of the answers in progress, for subscribers that join in the middle. Until an answer is stored, the
//! deltas from before they joined exist nowhere else.

use std::collections::HashMap;
use std::sync::Arc;

use polyclaw_domain::id::{RunId, TurnId};
use polyclaw_domain::session_key::SessionKey;

use super::{DelegateSpeaker, FrameKind, HubFrame};

#[derive(Default)]
pub(super) struct PartialTexts(HashMap<SessionKey, Vec<PartialText>>);

/// The text of one speaker so far.
struct PartialText {
    by: PartialTextAuthor,
    /// Empty while the speaker is only announced or is reasoning.
    text: String,
    /// Number of the first frame that belongs to it.
    first: u64,
    /// Number of the last frame that added text.
    seq: u64,
}

#[derive(Clone)]
enum PartialTextAuthor {
    /// The session's agent, in a step of a turn.
    Own(TurnId, usize),
    /// Another agent, for a turn that waits for it.
    Other(DelegateSpeaker),
}

impl PartialTextAuthor {
    fn is_own(&self, turn: &TurnId) -> bool {
        matches!(self, Self::Own(own, _) if own == turn)
    }

    /// Whether `piece` belongs to this text.
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

    /// Whether the text is from the turn itself or from a delegate of it.
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
            // Text before a tool call is stored with the call.
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

    /// Drops all texts of a turn that this node no longer runs, for any reason.
    pub fn drop_turn(&mut self, session: &SessionKey, turn: &TurnId) {
        self.remove_matching(session, |words| words.by.is_of(turn));
    }

    /// Drops the text that began with this frame.
    pub fn drop_from_frame(&mut self, session: &SessionKey, first: u64) {
        self.remove_matching(session, |words| words.first == first);
    }

    /// Whether the text of this frame is contained in a partial text.
    pub fn contains_piece(&self, frame: &HubFrame) -> bool {
        let tells = !matches!(frame.kind, FrameKind::Reasoning { .. });
        let mut text = self.0.get(&frame.session_key).into_iter().flatten();
        tells && text.any(|words| words.first <= frame.seq && words.by.matches_piece(&frame.kind))
    }

    fn add_own(&mut self, frame: &HubFrame, text: &str, by: PartialTextAuthor) {
        // The previous answer is stored once the next one starts.
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

    /// Frames that carry the complete texts. Each text is preceded by a frame that makes subscribers discard earlier
    /// pieces.
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
            // Past numbers are reused: a subscriber that resumes after the first frame gets the text again, after the
            // second it has it all.
            [(first.saturating_sub(1), restarted), (seq, all)]
        };
        let mut frames: Vec<_> = reply.flat_map(text_of).collect();
        frames.sort_by_key(|(seq, _)| *seq);
        let frame = |(seq, kind)| Arc::new(HubFrame { seq, session_key: session.clone(), kind });
        frames.into_iter().map(frame).collect()
    }
}
