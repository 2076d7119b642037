//! What is being said in a session right now, whole: for readers that come in the middle of it. Pieces from before they
//! came are nowhere else, until what they are pieces of is stored.

use std::collections::HashMap;
use std::sync::Arc;

use polyclaw_domain::id::{RunId, TurnId};
use polyclaw_domain::key::SessionKey;

use super::{Frame, FrameKind, Speaker};

#[derive(Default)]
pub(super) struct Growing(HashMap<SessionKey, Vec<Words>>);

/// What one of those who speak has said so far.
struct Words {
    by: By,
    text: String,
    /// Of the last frame it is made of.
    seq: u64,
}

#[derive(Clone)]
enum By {
    /// The agent of the session, in an answer of a turn.
    Own(TurnId, usize),
    /// Another agent, for a turn that waits for it.
    Other(Speaker),
}

impl By {
    fn is_own(&self, turn: &TurnId) -> bool {
        matches!(self, Self::Own(own, _) if own == turn)
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

impl Growing {
    pub fn take(&mut self, frame: &Frame) {
        let session = &frame.session_key;
        match &frame.kind {
            FrameKind::Delta { turn_id, step, text } => {
                let is_same = |by: &By| matches!(by, By::Own(turn, own) if turn == turn_id && own == step);
                // Once the next answer begins, the one before is stored.
                self.forget(session, |by| matches!(by, By::Own(..)) && !is_same(by));
                self.add(frame, text, is_same, || By::Own(turn_id.clone(), *step));
            }
            FrameKind::DelegateDelta { speaker, text } => {
                self.add(frame, text, |by| by.is_run(&speaker.run_id), || By::Other(speaker.clone()));
            }
            FrameKind::DelegateStarted(speaker) | FrameKind::DelegateEnded { speaker, .. } => {
                self.forget(session, |by| by.is_run(&speaker.run_id));
            }
            // What was said before a tool is asked for is stored with the call.
            FrameKind::Started { turn_id, .. }
            | FrameKind::Restarted { turn_id }
            | FrameKind::ToolStarted { turn_id, .. }
            | FrameKind::ToolEnded { turn_id, .. }
            | FrameKind::ApprovalAsked { turn_id, .. } => self.forget(session, |by| by.is_own(turn_id)),
            FrameKind::Ended { turn_id, .. } => self.leave(session, turn_id),
            _ => {}
        }
    }

    /// Nobody here drives the turn any more, however that came about.
    pub fn leave(&mut self, session: &SessionKey, turn: &TurnId) {
        self.forget(session, |by| by.is_of(turn));
    }

    fn add(&mut self, frame: &Frame, text: &str, is_same: impl Fn(&By) -> bool, by: impl FnOnce() -> By) {
        let mut said = self.0.get_mut(&frame.session_key).into_iter().flatten();
        if let Some(words) = said.find(|words| is_same(&words.by)) {
            words.text.push_str(text);
            words.seq = frame.seq;
            return;
        }
        let words = Words { by: by(), text: text.to_owned(), seq: frame.seq };
        self.0.entry(frame.session_key.clone()).or_default().push(words);
    }

    fn forget(&mut self, session: &SessionKey, is_over: impl Fn(&By) -> bool) {
        let Some(said) = self.0.get_mut(session) else { return };
        said.retain(|words| !is_over(&words.by));
        if said.is_empty() {
            self.0.remove(session);
        }
    }

    /// Frames that tell all of it: each begins by taking back what a reader may have heard of it.
    pub fn frames(&self, session: &SessionKey) -> Vec<Arc<Frame>> {
        let said = self.0.get(session).into_iter().flatten();
        let told = |Words { by, text, seq }: &Words| {
            let (seq, text) = (*seq, text.clone());
            let (anew, all) = match by.clone() {
                By::Own(turn_id, step) => (
                    FrameKind::Restarted { turn_id: turn_id.clone() },
                    FrameKind::Delta { turn_id, step, text },
                ),
                By::Other(speaker) => {
                    (FrameKind::DelegateStarted(speaker.clone()), FrameKind::DelegateDelta { speaker, text })
                }
            };
            // Numbers that were, so that a reader that asks again after one misses nothing.
            [(seq.saturating_sub(1), anew), (seq, all)]
        };
        let mut frames: Vec<_> = said.flat_map(told).collect();
        frames.sort_by_key(|(seq, _)| *seq);
        let frame = |(seq, kind)| Arc::new(Frame { seq, session_key: session.clone(), kind });
        frames.into_iter().map(frame).collect()
    }
}
