//! Live frames: tokens, tool events and state changes, numbered, kept for a while and handed to whoever
//! watches a session. Losing the hub loses nothing: all that counts is in the database.

mod frame;
mod growing;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polyclaw_domain::id::TurnId;
use polyclaw_domain::job::JobState;
use polyclaw_domain::session_key::SessionKey;
use tokio::sync::mpsc;

pub use frame::{Frame, FrameKind, Speaker};
use growing::Growing;

/// Frames kept for replay, over all sessions.
const KEPT: usize = 8192;
/// Bytes of text they may hold together: long messages and replies are frames too.
const KEPT_BYTES: usize = 16 * 1024 * 1024;
/// Frames a reader may be behind before it is told so and let go.
const BEHIND: usize = 1024;
/// Bytes of text likewise: few frames can be long.
const BEHIND_BYTES: usize = 4 * 1024 * 1024;

#[derive(Default)]
pub struct Hub(Mutex<State>);

/// What this node has seen since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub accepted: u64,
    pub done: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub steered: u64,
    /// Tokens of ended turns whose provider told them.
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub watchers: usize,
}

impl Counters {
    fn count(&mut self, kind: &FrameKind) {
        match kind {
            FrameKind::Accepted { .. } => self.accepted += 1,
            FrameKind::Ended { state, usage, .. } => {
                match state {
                    JobState::Done => self.done += 1,
                    JobState::Cancelled => self.cancelled += 1,
                    JobState::Steered => self.steered += 1,
                    _ => self.failed += 1,
                }
                self.input_tokens += usage.input_tokens.unwrap_or(0);
                self.output_tokens += usage.output_tokens.unwrap_or(0);
            }
            _ => {}
        }
    }
}

#[derive(Default)]
struct State {
    seq: u64,
    counters: Counters,
    kept: VecDeque<Arc<Frame>>,
    kept_bytes: usize,
    growing: Growing,
    watchers: HashMap<SessionKey, Vec<Watcher>>,
    /// Those that watch every session.
    everywhere: Vec<Watcher>,
}

/// The hub's end of a watch.
struct Watcher {
    frames: mpsc::Sender<Arc<Frame>>,
    /// What waits there to be read.
    bytes: Arc<AtomicUsize>,
}

impl Watcher {
    fn pair() -> (Self, Watch) {
        let (sender, frames) = mpsc::channel(BEHIND);
        let bytes = Arc::new(AtomicUsize::new(0));
        (Self { frames: sender, bytes: Arc::clone(&bytes) }, Watch { frames, bytes })
    }

    /// Hands a frame on; `false` if the reader has gone or is too far behind.
    fn send(&self, frame: &Arc<Frame>) -> bool {
        let size = frame.kind.bytes();
        let waiting = self.bytes.fetch_add(size, Ordering::Relaxed);
        // A frame of any size passes where nothing else waits.
        (waiting == 0 || waiting + size <= BEHIND_BYTES) && self.frames.try_send(Arc::clone(frame)).is_ok()
    }
}

impl State {
    fn keep(&mut self, frame: Arc<Frame>) {
        self.kept_bytes += frame.kind.bytes();
        self.kept.push_back(frame);
        while self.kept.len() > KEPT || self.kept_bytes > KEPT_BYTES {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.kept_bytes -= oldest.kind.bytes();
        }
    }

    fn tell_growing(&self, session: &SessionKey, watcher: &Watcher) {
        for frame in self.growing.frames(session) {
            watcher.send(&frame);
        }
    }
}

/// A reader's end. `None` from `recv` means it fell too far behind, or the hub is gone.
pub struct Watch {
    frames: mpsc::Receiver<Arc<Frame>>,
    bytes: Arc<AtomicUsize>,
}

impl Watch {
    pub async fn recv(&mut self) -> Option<Arc<Frame>> {
        let frame = self.frames.recv().await?;
        self.bytes.fetch_sub(frame.kind.bytes(), Ordering::Relaxed);
        Some(frame)
    }
}

/// What a reader gets that asks for frames after a number.
pub enum Replay {
    From(Vec<Arc<Frame>>),
    /// Some of them are no longer kept: read the transcript instead.
    TooOld,
}

impl Hub {
    /// Returns the number under which it is told.
    pub fn publish(&self, session: &SessionKey, kind: FrameKind) -> u64 {
        let mut state = self.lock();
        state.seq += 1;
        state.counters.count(&kind);
        let frame = Arc::new(Frame { seq: state.seq, session_key: session.clone(), kind });
        state.growing.take(&frame);
        state.keep(Arc::clone(&frame));
        state.everywhere.retain(|watcher| watcher.send(&frame));
        if let Some(watchers) = state.watchers.get_mut(session) {
            watchers.retain(|watcher| watcher.send(&frame));
            if watchers.is_empty() {
                state.watchers.remove(session);
            }
        }
        frame.seq
    }

    /// Frames of all sessions from now on.
    pub fn watch_all(&self) -> Watch {
        let (watcher, watch) = Watcher::pair();
        self.lock().everywhere.push(watcher);
        watch
    }

    /// Frames of one session from now on; first of all, whole, what somebody is just saying there.
    pub fn watch(&self, session: &SessionKey) -> Watch {
        let (watcher, watch) = Watcher::pair();
        let mut state = self.lock();
        state.tell_growing(session, &watcher);
        state.watchers.entry(session.clone()).or_default().push(watcher);
        watch
    }

    /// Frames of one session after `seq`, then those to come, with no gap between. Who asks from 0 gets what somebody is
    /// just saying whole and once: its first pieces may be kept no longer.
    pub fn watch_after(&self, session: &SessionKey, seq: u64) -> (Replay, Watch) {
        let (watcher, watch) = Watcher::pair();
        let mut state = self.lock();
        let replay = replay(&state, session, seq);
        if matches!(replay, Replay::TooOld) {
            state.tell_growing(session, &watcher);
        }
        state.watchers.entry(session.clone()).or_default().push(watcher);
        (replay, watch)
    }

    /// A turn is no longer driven here.
    pub(crate) fn leave(&self, session: &SessionKey, turn: &TurnId) {
        self.lock().growing.leave(session, turn);
    }

    /// What began with this frame of a session is no longer said.
    pub(crate) fn silence(&self, session: &SessionKey, first: u64) {
        self.lock().growing.silence(session, first);
    }

    pub fn seq(&self) -> u64 {
        self.lock().seq
    }

    pub fn counters(&self) -> Counters {
        let state = self.lock();
        let watchers = state.watchers.values().map(Vec::len).sum();
        Counters { watchers, ..state.counters }
    }

    /// Drops the places of readers that have gone, so that idle sessions hold none.
    pub fn sweep(&self) {
        self.lock().watchers.retain(|_, watchers| {
            watchers.retain(|watcher| !watcher.frames.is_closed());
            !watchers.is_empty()
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn replay(state: &State, session: &SessionKey, seq: u64) -> Replay {
    let oldest = state.kept.front().map_or(state.seq + 1, |frame| frame.seq);
    if seq == 0 {
        return Replay::From(from_start(state, session));
    }
    if seq > state.seq || seq + 1 < oldest {
        return Replay::TooOld;
    }
    let after = state.kept.iter().filter(|frame| frame.seq > seq && frame.session_key == *session);
    Replay::From(after.cloned().collect())
}

/// Who asks from 0 has seen nothing and misses nothing: it gets what is kept.
fn from_start(state: &State, session: &SessionKey) -> Vec<Arc<Frame>> {
    let kept = state.kept.iter().filter(|frame| frame.session_key == *session);
    let mut frames: Vec<_> = kept.filter(|frame| !state.growing.has(frame)).cloned().collect();
    frames.extend(state.growing.frames(session));
    frames.sort_by_key(|frame| frame.seq);
    frames
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::id::AgentId;

    use super::*;

    fn key(name: &str) -> SessionKey {
        SessionKey::for_direct(&AgentId::main(), "web", name)
    }

    #[test]
    fn a_reader_gets_its_session_only_and_can_ask_again_from_a_number() {
        let hub = Hub::default();
        let mut watch = hub.watch(&key("a"));
        hub.publish(&key("a"), FrameKind::Changed);
        hub.publish(&key("b"), FrameKind::Changed);
        hub.publish(&key("a"), FrameKind::Changed);
        assert_eq!(watch.frames.try_recv().unwrap().seq, 1);
        assert_eq!(watch.frames.try_recv().unwrap().seq, 3);
        let (Replay::From(frames), _) = hub.watch_after(&key("a"), 1) else { panic!() };
        assert_eq!(frames.iter().map(|f| f.seq).collect::<Vec<_>>(), [3]);
        assert!(matches!(hub.watch_after(&key("a"), 99).0, Replay::TooOld), "a number of another life");
    }

    #[test]
    fn a_reader_too_far_behind_is_let_go() {
        let hub = Hub::default();
        let mut watch = hub.watch(&key("a"));
        for _ in 0..=BEHIND {
            hub.publish(&key("a"), FrameKind::Changed);
        }
        let mut got = 0;
        while watch.frames.try_recv().is_ok() {
            got += 1;
        }
        assert_eq!(got, BEHIND);
        assert!(matches!(watch.frames.try_recv(), Err(mpsc::error::TryRecvError::Disconnected)));
        assert!(hub.lock().watchers.is_empty());
    }

    fn delta(turn: &str, step: usize, text: &str) -> FrameKind {
        FrameKind::Delta { turn_id: TurnId::new(turn), step, text: text.to_owned() }
    }

    fn speaker(run: &str) -> Speaker {
        let run_id = polyclaw_domain::id::RunId::new(run);
        Speaker { turn_id: TurnId::new("t"), run_id, agent_id: "ops".into(), name: "Ops".into() }
    }

    /// What a reader that comes now is told first.
    fn told(watch: &mut Watch) -> Vec<String> {
        let line = |frame: Arc<Frame>| match &frame.kind {
            FrameKind::Delta { step, text, .. } => format!("{} {step} {text}", frame.seq),
            FrameKind::DelegateDelta { speaker, text } => {
                format!("{} {} {text}", frame.seq, speaker.run_id)
            }
            FrameKind::Restarted { .. } => format!("{} anew", frame.seq),
            FrameKind::DelegateStarted(speaker) => format!("{} {} anew", frame.seq, speaker.run_id),
            other => panic!("{other:?}"),
        };
        std::iter::from_fn(|| watch.frames.try_recv().ok()).map(line).collect()
    }

    #[test]
    fn a_reader_that_comes_in_the_middle_is_told_first_what_was_said_so_far() {
        let hub = Hub::default();
        hub.publish(&key("a"), delta("t", 0, "Once "));
        hub.publish(&key("a"), FrameKind::DelegateDelta { speaker: speaker("r"), text: "I ".into() });
        hub.publish(&key("a"), delta("t", 0, "upon "));
        hub.publish(&key("a"), FrameKind::DelegateDelta { speaker: speaker("r"), text: "know".into() });
        let so_far = ["0 anew", "1 r anew", "3 0 Once upon ", "4 r I know"];
        assert_eq!(told(&mut hub.watch(&key("a"))), so_far);
        assert_eq!(told(&mut hub.watch_after(&key("a"), 99).1), so_far, "a number of another life");
        assert!(told(&mut hub.watch_after(&key("a"), 2).1).is_empty(), "it gets the frames themselves");
        assert!(told(&mut hub.watch(&key("b"))).is_empty());
        let mut watch = hub.watch(&key("a"));
        told(&mut watch);
        hub.publish(&key("a"), delta("t", 0, "a time"));
        assert_eq!(told(&mut watch), ["5 0 a time"]);
    }

    #[test]
    fn what_is_stored_or_no_longer_counts_is_not_told_to_those_who_come_later() {
        let turn = || TurnId::new("t");
        let restarted = FrameKind::Restarted { turn_id: turn() };
        let started = FrameKind::Started { turn_id: turn(), agent_id: "main".into(), resumes: Vec::new() };
        for over in [restarted, started] {
            let hub = Hub::default();
            hub.publish(&key("a"), delta("t", 0, "old"));
            hub.publish(&key("a"), over);
            hub.publish(&key("a"), delta("t", 1, "new"));
            assert_eq!(told(&mut hub.watch(&key("a"))), ["2 anew", "3 1 new"]);
        }
        let hub = Hub::default();
        hub.publish(&key("a"), delta("t", 0, "old"));
        hub.publish(&key("a"), delta("t", 1, "new"));
        assert_eq!(told(&mut hub.watch(&key("a"))), ["1 anew", "2 1 new"]);
        let hub = Hub::default();
        hub.publish(&key("a"), delta("t", 0, "said"));
        hub.publish(&key("a"), FrameKind::DelegateDelta { speaker: speaker("r"), text: "too".into() });
        hub.leave(&key("a"), &turn());
        assert!(told(&mut hub.watch(&key("a"))).is_empty());
    }

    #[test]
    fn a_reader_from_the_start_is_told_whole_and_once_what_is_just_being_said() {
        let hub = Hub::default();
        let turn_id = || TurnId::new("t");
        let thought = || FrameKind::Reasoning { turn_id: turn_id(), step: 1, text: "hm".into() };
        hub.publish(&key("a"), delta("t", 0, "stored"));
        hub.publish(&key("a"), FrameKind::Changed);
        hub.publish(&key("a"), thought());
        let text = "so ";
        // More pieces than are kept.
        for _ in 0..KEPT {
            hub.publish(&key("a"), delta("t", 1, text));
        }
        hub.publish(&key("a"), thought());
        let (Replay::From(frames), mut watch) = hub.watch_after(&key("a"), 0) else { panic!() };
        let kinds: Vec<_> = frames.iter().map(|frame| (frame.seq, &frame.kind)).collect();
        let [
            (2, FrameKind::Restarted { .. }),
            (said, FrameKind::Delta { text: whole, .. }),
            (last, FrameKind::Reasoning { .. }),
        ] = kinds[..]
        else {
            panic!("{kinds:?}")
        };
        assert_eq!((said + 1, last, whole), (last, hub.seq(), &text.repeat(KEPT)));
        assert!(told(&mut watch).is_empty(), "it is told once");
        let (Replay::From(again), _) = hub.watch_after(&key("a"), last) else { panic!() };
        assert!(again.is_empty());
    }

    #[test]
    fn one_who_went_away_in_the_middle_of_a_word_is_not_heard_later() {
        let hub = Hub::default();
        let first = hub.publish(&key("a"), FrameKind::DelegateStarted(speaker("r")));
        hub.publish(&key("a"), FrameKind::DelegateDelta { speaker: speaker("r"), text: "I".into() });
        let next = hub.publish(&key("a"), FrameKind::DelegateStarted(speaker("r")));
        hub.publish(&key("a"), FrameKind::DelegateDelta { speaker: speaker("r"), text: "We".into() });
        hub.silence(&key("a"), first);
        assert_eq!(told(&mut hub.watch(&key("a"))), ["2 r anew", "4 r We"], "another speaks already");
        hub.silence(&key("a"), next);
        assert!(told(&mut hub.watch(&key("a"))).is_empty());
    }

    #[tokio::test]
    async fn a_reader_of_long_frames_is_let_go_sooner_and_one_that_reads_never() {
        let hub = Hub::default();
        let (mut slow, mut quick) = (hub.watch(&key("a")), hub.watch(&key("a")));
        for _ in 0..20 {
            let text = "x".repeat(BEHIND_BYTES / 4);
            hub.publish(&key("a"), FrameKind::Delta { turn_id: TurnId::new("t"), step: 0, text });
            assert!(quick.recv().await.is_some());
        }
        let mut got = 0;
        while slow.recv().await.is_some() {
            got += 1;
        }
        assert_eq!(got, 4);
        hub.publish(
            &key("a"),
            FrameKind::Delta { turn_id: TurnId::new("t"), step: 0, text: "x".repeat(2 * BEHIND_BYTES) },
        );
        assert!(quick.recv().await.is_some(), "one long frame alone is not too far behind");
    }

    #[test]
    fn what_is_kept_is_bounded_in_bytes_too() {
        let hub = Hub::default();
        for n in 0..100 {
            let text = "x".repeat(1_000_000);
            hub.publish(&key("a"), FrameKind::Delta { turn_id: TurnId::new(n.to_string()), step: 0, text });
        }
        let state = hub.lock();
        assert!(
            state.kept_bytes <= KEPT_BYTES && (10..20).contains(&state.kept.len()),
            "{}",
            state.kept.len()
        );
    }

    #[test]
    fn what_is_no_longer_kept_is_said() {
        let hub = Hub::default();
        for _ in 0..KEPT + 10 {
            hub.publish(&key("a"), FrameKind::Changed);
        }
        assert!(matches!(hub.watch_after(&key("a"), 5).0, Replay::TooOld));
        assert!(matches!(hub.watch_after(&key("a"), 10).0, Replay::From(_)));
        assert!(matches!(hub.watch_after(&key("a"), 0).0, Replay::From(frames) if frames.len() == KEPT));
    }
}
