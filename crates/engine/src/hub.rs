//! Live frames: tokens, tool events and state changes. They are numbered, retained for a while and sent to the
//! subscribers of a session. Losing the hub loses no data; everything that matters is in the database.

mod partial_text;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use polyclaw_domain::frame::{DelegateSpeaker, FrameKind, HubFrame};
use polyclaw_domain::id::TurnId;
use polyclaw_domain::job::JobState;
use polyclaw_domain::session_key::SessionKey;
use tokio::sync::mpsc;

use partial_text::PartialTexts;

/// Frames retained for replay, over all sessions.
const RETAINED_FRAMES: usize = 8192;
/// Maximum bytes of text in the retained frames. Long messages and replies are frames too.
const RETAINED_FRAME_BYTES: usize = 16 * 1024 * 1024;
/// Frames a subscriber may lag before it is disconnected.
const MAX_LAG_FRAMES: usize = 1024;
/// Bytes of text a subscriber may lag, because a few frames can be long.
const MAX_LAG_BYTES: usize = 4 * 1024 * 1024;

#[derive(Default)]
pub struct Hub(Mutex<HubState>);

/// Counts of this node since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HubCounters {
    pub accepted: u64,
    pub done: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub steered: u64,
    /// Tokens of ended turns whose provider reported them.
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub watchers: usize,
}

impl HubCounters {
    fn count_frame(&mut self, kind: &FrameKind) {
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
struct HubState {
    seq: u64,
    counters: HubCounters,
    retained: VecDeque<Arc<HubFrame>>,
    retained_bytes: usize,
    partial_texts: PartialTexts,
    watchers: HashMap<SessionKey, Vec<HubSubscriber>>,
    /// Subscribers of all sessions.
    everywhere: Vec<HubSubscriber>,
}

/// The hub's end of a subscription.
struct HubSubscriber {
    frames: mpsc::Sender<Arc<HubFrame>>,
    /// Bytes of text that are queued for the subscriber.
    bytes: Arc<AtomicUsize>,
}

impl HubSubscriber {
    fn channel() -> (Self, HubSubscription) {
        let (sender, frames) = mpsc::channel(MAX_LAG_FRAMES);
        let bytes = Arc::new(AtomicUsize::new(0));
        (Self { frames: sender, bytes: Arc::clone(&bytes) }, HubSubscription { frames, bytes })
    }

    /// Sends a frame. `false`: the subscriber is gone or too far behind.
    fn send(&self, frame: &Arc<HubFrame>) -> bool {
        let size = frame.kind.size_bytes();
        let waiting = self.bytes.fetch_add(size, Ordering::Relaxed);
        // A frame of any size passes if nothing else is queued.
        (waiting == 0 || waiting + size <= MAX_LAG_BYTES) && self.frames.try_send(Arc::clone(frame)).is_ok()
    }
}

impl HubState {
    fn retain_frame(&mut self, frame: Arc<HubFrame>) {
        self.retained_bytes += frame.kind.size_bytes();
        self.retained.push_back(frame);
        while self.retained.len() > RETAINED_FRAMES || self.retained_bytes > RETAINED_FRAME_BYTES {
            let Some(oldest) = self.retained.pop_front() else { return };
            self.retained_bytes -= oldest.kind.size_bytes();
        }
    }

    fn send_partial_texts(&self, session: &SessionKey, watcher: &HubSubscriber) {
        for frame in self.partial_texts.catch_up_frames(session) {
            watcher.send(&frame);
        }
    }
}

/// A subscriber's end. `recv` returns `None` if it fell too far behind or the hub is gone.
pub struct HubSubscription {
    frames: mpsc::Receiver<Arc<HubFrame>>,
    bytes: Arc<AtomicUsize>,
}

impl HubSubscription {
    pub async fn recv(&mut self) -> Option<Arc<HubFrame>> {
        let frame = self.frames.recv().await?;
        self.bytes.fetch_sub(frame.kind.size_bytes(), Ordering::Relaxed);
        Some(frame)
    }
}

/// Frames after a given number, for a subscriber that catches up.
pub enum FrameReplay {
    From(Vec<Arc<HubFrame>>),
    /// Some of the frames are no longer retained; read the transcript instead.
    TooOld,
}

impl Hub {
    /// Publishes a frame and returns its number.
    pub fn publish(&self, session: &SessionKey, kind: FrameKind) -> u64 {
        let mut state = self.lock();
        state.seq += 1;
        state.counters.count_frame(&kind);
        let frame = Arc::new(HubFrame { seq: state.seq, session_key: session.clone(), kind });
        state.partial_texts.apply_frame(&frame);
        state.retain_frame(Arc::clone(&frame));
        state.everywhere.retain(|watcher| watcher.send(&frame));
        if let Some(watchers) = state.watchers.get_mut(session) {
            watchers.retain(|watcher| watcher.send(&frame));
            if watchers.is_empty() {
                state.watchers.remove(session);
            }
        }
        frame.seq
    }

    /// Subscribes to new frames of all sessions.
    pub fn subscribe_all(&self) -> HubSubscription {
        let (watcher, watch) = HubSubscriber::channel();
        self.lock().everywhere.push(watcher);
        watch
    }

    /// Subscribes to new frames of one session, starting with the complete text of any answer in progress.
    pub fn subscribe(&self, session: &SessionKey) -> HubSubscription {
        let (watcher, watch) = HubSubscriber::channel();
        let mut state = self.lock();
        state.send_partial_texts(session, &watcher);
        state.watchers.entry(session.clone()).or_default().push(watcher);
        watch
    }

    /// Returns the frames of one session after `seq` and subscribes to new ones, without a gap. For `seq` 0, an answer
    /// in progress is sent once and complete, because its first deltas may no longer be retained.
    pub fn subscribe_after(&self, session: &SessionKey, seq: u64) -> (FrameReplay, HubSubscription) {
        let (watcher, watch) = HubSubscriber::channel();
        let mut state = self.lock();
        let replay = replay_frames(&state, session, seq);
        if matches!(replay, FrameReplay::TooOld) {
            state.send_partial_texts(session, &watcher);
        }
        state.watchers.entry(session.clone()).or_default().push(watcher);
        (replay, watch)
    }

    /// Drops the partial text of a turn that no longer runs here.
    pub(crate) fn drop_turn_text(&self, session: &SessionKey, turn: &TurnId) {
        self.lock().partial_texts.drop_turn(session, turn);
    }

    /// Drops the partial text that began with this frame of a session.
    pub(crate) fn drop_text_from(&self, session: &SessionKey, first: u64) {
        self.lock().partial_texts.drop_from_frame(session, first);
    }

    pub fn last_seq(&self) -> u64 {
        self.lock().seq
    }

    pub fn counters(&self) -> HubCounters {
        let state = self.lock();
        let watchers = state.watchers.values().map(Vec::len).sum();
        HubCounters { watchers, ..state.counters }
    }

    /// Removes subscribers that are gone, so that idle sessions hold no memory.
    pub fn remove_closed_subscribers(&self) {
        self.lock().watchers.retain(|_, watchers| {
            watchers.retain(|watcher| !watcher.frames.is_closed());
            !watchers.is_empty()
        });
    }

    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn replay_frames(state: &HubState, session: &SessionKey, seq: u64) -> FrameReplay {
    let oldest = state.retained.front().map_or(state.seq + 1, |frame| frame.seq);
    if seq == 0 {
        return FrameReplay::From(frames_from_start(state, session));
    }
    if seq > state.seq || seq + 1 < oldest {
        return FrameReplay::TooOld;
    }
    let after = state.retained.iter().filter(|frame| frame.seq > seq && frame.session_key == *session);
    FrameReplay::From(after.cloned().collect())
}

/// Returns all retained frames for a subscriber that starts from 0, with answers in progress merged into one frame.
fn frames_from_start(state: &HubState, session: &SessionKey) -> Vec<Arc<HubFrame>> {
    let kept = state.retained.iter().filter(|frame| frame.session_key == *session);
    let mut frames: Vec<_> =
        kept.filter(|frame| !state.partial_texts.contains_piece(frame)).cloned().collect();
    frames.extend(state.partial_texts.catch_up_frames(session));
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
    fn subscriber_gets_only_its_session_and_can_replay_from_seq() {
        let hub = Hub::default();
        let mut watch = hub.subscribe(&key("a"));
        hub.publish(&key("a"), FrameKind::Changed);
        hub.publish(&key("b"), FrameKind::Changed);
        hub.publish(&key("a"), FrameKind::Changed);
        assert_eq!(watch.frames.try_recv().unwrap().seq, 1);
        assert_eq!(watch.frames.try_recv().unwrap().seq, 3);
        let (FrameReplay::From(frames), _) = hub.subscribe_after(&key("a"), 1) else { panic!() };
        assert_eq!(frames.iter().map(|f| f.seq).collect::<Vec<_>>(), [3]);
        assert!(
            matches!(hub.subscribe_after(&key("a"), 99).0, FrameReplay::TooOld),
            "a number of another life"
        );
    }

    #[test]
    fn lagging_subscriber_is_dropped() {
        let hub = Hub::default();
        let mut watch = hub.subscribe(&key("a"));
        for _ in 0..=MAX_LAG_FRAMES {
            hub.publish(&key("a"), FrameKind::Changed);
        }
        let mut got = 0;
        while watch.frames.try_recv().is_ok() {
            got += 1;
        }
        assert_eq!(got, MAX_LAG_FRAMES);
        assert!(matches!(watch.frames.try_recv(), Err(mpsc::error::TryRecvError::Disconnected)));
        assert!(hub.lock().watchers.is_empty());
    }

    fn delta(turn: &str, step: usize, text: &str) -> FrameKind {
        FrameKind::Delta { turn_id: TurnId::new(turn), step, text: text.to_owned() }
    }

    fn speaker(run: &str) -> DelegateSpeaker {
        let run_id = polyclaw_domain::id::RunId::new(run);
        DelegateSpeaker { turn_id: TurnId::new("t"), run_id, agent_id: "ops".into(), name: "Ops".into() }
    }

    /// The frames that a new subscriber receives first.
    fn told(watch: &mut HubSubscription) -> Vec<String> {
        let line = |frame: Arc<HubFrame>| match &frame.kind {
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
    fn late_subscriber_first_gets_partial_text() {
        let hub = Hub::default();
        hub.publish(&key("a"), delta("t", 0, "Once "));
        hub.publish(&key("a"), FrameKind::DelegateDelta { speaker: speaker("r"), text: "I ".into() });
        hub.publish(&key("a"), delta("t", 0, "upon "));
        hub.publish(&key("a"), FrameKind::DelegateDelta { speaker: speaker("r"), text: "know".into() });
        let so_far = ["0 anew", "1 r anew", "3 0 Once upon ", "4 r I know"];
        assert_eq!(told(&mut hub.subscribe(&key("a"))), so_far);
        assert_eq!(told(&mut hub.subscribe_after(&key("a"), 99).1), so_far, "a number of another life");
        assert!(told(&mut hub.subscribe_after(&key("a"), 2).1).is_empty(), "it gets the frames themselves");
        assert!(told(&mut hub.subscribe(&key("b"))).is_empty());
        let mut watch = hub.subscribe(&key("a"));
        told(&mut watch);
        hub.publish(&key("a"), delta("t", 0, "a time"));
        assert_eq!(told(&mut watch), ["5 0 a time"]);
    }

    #[test]
    fn late_subscriber_gets_no_stored_or_discarded_text() {
        let turn = || TurnId::new("t");
        let restarted = FrameKind::Restarted { turn_id: turn() };
        let started = FrameKind::Started { turn_id: turn(), agent_id: "main".into(), resumes: Vec::new() };
        for over in [restarted, started] {
            let hub = Hub::default();
            hub.publish(&key("a"), delta("t", 0, "old"));
            hub.publish(&key("a"), over);
            hub.publish(&key("a"), delta("t", 1, "new"));
            assert_eq!(told(&mut hub.subscribe(&key("a"))), ["2 anew", "3 1 new"]);
        }
        let hub = Hub::default();
        hub.publish(&key("a"), delta("t", 0, "old"));
        hub.publish(&key("a"), delta("t", 1, "new"));
        assert_eq!(told(&mut hub.subscribe(&key("a"))), ["1 anew", "2 1 new"]);
        let hub = Hub::default();
        hub.publish(&key("a"), delta("t", 0, "said"));
        hub.publish(&key("a"), FrameKind::DelegateDelta { speaker: speaker("r"), text: "too".into() });
        hub.drop_turn_text(&key("a"), &turn());
        assert!(told(&mut hub.subscribe(&key("a"))).is_empty());
    }

    #[test]
    fn replay_from_start_merges_deltas_of_current_step() {
        let hub = Hub::default();
        let turn_id = || TurnId::new("t");
        let thought = || FrameKind::Reasoning { turn_id: turn_id(), step: 1, text: "hm".into() };
        hub.publish(&key("a"), delta("t", 0, "stored"));
        hub.publish(&key("a"), FrameKind::Changed);
        hub.publish(&key("a"), thought());
        let text = "so ";
        // More deltas than are retained.
        for _ in 0..RETAINED_FRAMES {
            hub.publish(&key("a"), delta("t", 1, text));
        }
        hub.publish(&key("a"), thought());
        let (FrameReplay::From(frames), mut watch) = hub.subscribe_after(&key("a"), 0) else { panic!() };
        let kinds: Vec<_> = frames.iter().map(|frame| (frame.seq, &frame.kind)).collect();
        let [
            (2, FrameKind::Restarted { .. }),
            (reply, FrameKind::Delta { text: whole, .. }),
            (last, FrameKind::Reasoning { .. }),
        ] = kinds[..]
        else {
            panic!("{kinds:?}")
        };
        assert_eq!((reply + 1, last, whole), (last, hub.last_seq(), &text.repeat(RETAINED_FRAMES)));
        assert!(told(&mut watch).is_empty(), "it is told once");
        let (FrameReplay::From(again), _) = hub.subscribe_after(&key("a"), last) else { panic!() };
        assert!(again.is_empty());
    }

    #[test]
    fn dropped_delegate_text_is_not_replayed() {
        let hub = Hub::default();
        let first = hub.publish(&key("a"), FrameKind::DelegateStarted(speaker("r")));
        hub.publish(&key("a"), FrameKind::DelegateDelta { speaker: speaker("r"), text: "I".into() });
        let next = hub.publish(&key("a"), FrameKind::DelegateStarted(speaker("r")));
        hub.publish(&key("a"), FrameKind::DelegateDelta { speaker: speaker("r"), text: "We".into() });
        hub.drop_text_from(&key("a"), first);
        assert_eq!(told(&mut hub.subscribe(&key("a"))), ["2 r anew", "4 r We"], "another speaks already");
        hub.drop_text_from(&key("a"), next);
        assert!(told(&mut hub.subscribe(&key("a"))).is_empty());
    }

    #[tokio::test]
    async fn lag_limit_counts_bytes_and_spares_fast_subscriber() {
        let hub = Hub::default();
        let (mut slow, mut quick) = (hub.subscribe(&key("a")), hub.subscribe(&key("a")));
        for _ in 0..20 {
            let text = "x".repeat(MAX_LAG_BYTES / 4);
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
            FrameKind::Delta { turn_id: TurnId::new("t"), step: 0, text: "x".repeat(2 * MAX_LAG_BYTES) },
        );
        assert!(quick.recv().await.is_some(), "one long frame alone is not too far behind");
    }

    #[test]
    fn retained_frames_are_limited_in_bytes() {
        let hub = Hub::default();
        for n in 0..100 {
            let text = "x".repeat(1_000_000);
            hub.publish(&key("a"), FrameKind::Delta { turn_id: TurnId::new(n.to_string()), step: 0, text });
        }
        let state = hub.lock();
        assert!(
            state.retained_bytes <= RETAINED_FRAME_BYTES && (10..20).contains(&state.retained.len()),
            "{}",
            state.retained.len()
        );
    }

    #[test]
    fn replay_of_dropped_frames_returns_too_old() {
        let hub = Hub::default();
        for _ in 0..RETAINED_FRAMES + 10 {
            hub.publish(&key("a"), FrameKind::Changed);
        }
        assert!(matches!(hub.subscribe_after(&key("a"), 5).0, FrameReplay::TooOld));
        assert!(matches!(hub.subscribe_after(&key("a"), 10).0, FrameReplay::From(_)));
        assert!(
            matches!(hub.subscribe_after(&key("a"), 0).0, FrameReplay::From(frames) if frames.len() == RETAINED_FRAMES)
        );
    }
}
