//! A running turn: its state on this node besides the database.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use polyclaw_domain::id::MessageId;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::jobs::TurnClaim;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{ClaimWithRows, StreamedText};
use crate::budget::UnstoredModelCall;
use crate::draft::TurnDrafts;
use crate::hub::Hub;
use crate::lanes::{LaneScheduler, LaneSlot};
use crate::prompt::TurnRows;

/// A turn that this node drives.
pub(crate) struct RunningTurn {
    pub claim: TurnClaim,
    pub cancelled: AtomicBool,
    pub cancel: Notify,
    began: Instant,
    /// Milliseconds from `began` to its last activity: a token, tool output or stored step. Measured by a monotonic
    /// clock, because setting the wall clock would end turns early or never.
    progress: AtomicU64,
    /// Rows read with the claim, for the first load.
    rows: Mutex<Option<TurnRows>>,
    /// The model call that is running or not stored yet.
    model_call: Mutex<Option<UnstoredModelCall>>,
    /// Its end is being stored.
    ending: AtomicBool,
    /// The turn that was claimed with this one's end, for its slot.
    next: Mutex<Option<ClaimWithRows>>,
    /// The lane slot it runs in. `None` while it waits.
    slot: Mutex<Option<LaneSlot>>,
    waits: Mutex<TurnWaitTime>,
    /// Drafts of its answer that platforms already show.
    pub drafts: Arc<TurnDrafts>,
    /// It has waited for runs.
    waited: AtomicBool,
    /// The text streamed so far.
    streamed_text: Mutex<StreamedText>,
    /// Text or reasoning of the current call was shown.
    shown: AtomicBool,
    /// The mirrored conversation, and the frame there with which its current answer starts.
    mirror_position: Mutex<Option<(SessionKey, u64)>>,
}

/// Time spent waiting for a person or another agent, which does not count as the turn's own.
#[derive(Default)]
struct TurnWaitTime {
    since: Option<Instant>,
    over: Duration,
}

impl RunningTurn {
    pub fn new(claim: TurnClaim, rows: Option<TurnRows>) -> Arc<Self> {
        Arc::new(Self {
            cancelled: AtomicBool::new(claim.stopping),
            claim,
            cancel: Notify::new(),
            began: Instant::now(),
            progress: AtomicU64::new(0),
            rows: Mutex::new(rows),
            model_call: Mutex::default(),
            ending: AtomicBool::new(false),
            next: Mutex::default(),
            slot: Mutex::default(),
            waits: Mutex::default(),
            drafts: Arc::default(),
            waited: AtomicBool::new(false),
            streamed_text: Mutex::default(),
            shown: AtomicBool::new(false),
            mirror_position: Mutex::default(),
        })
    }

    /// Returns the start time, given the current time.
    pub fn started_at(&self, now: Millis) -> Millis {
        now.plus(-i64::try_from(self.age_ms()).unwrap_or(0))
    }

    pub fn begin_streamed_text(&self) {
        self.streamed_text.lock().unwrap_or_else(PoisonError::into_inner).begin_call();
    }

    pub fn append_streamed_text(&self, text: &str) {
        self.streamed_text.lock().unwrap_or_else(PoisonError::into_inner).append(text);
    }

    /// The last streamed text is about to be stored as this step.
    pub fn set_streamed_step(&self, step: MessageId) {
        self.streamed_text.lock().unwrap_or_else(PoisonError::into_inner).set_step(step);
    }

    pub fn streamed_text(&self) -> StreamedText {
        self.streamed_text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the flag and returns its previous value.
    pub fn swap_shown(&self, shown: bool) -> bool {
        self.shown.swap(shown, Ordering::Relaxed)
    }

    pub fn set_mirror_position(&self, start: Option<(SessionKey, u64)>) {
        *self.mirror_position.lock().unwrap_or_else(PoisonError::into_inner) = start;
    }

    /// Drops the turn's streamed text from the hub when nothing on this node drives it any more, so that new
    /// subscribers do not see it.
    pub(super) fn drop_hub_text(&self, hub: &Hub) {
        hub.drop_turn_text(&self.claim.session, &self.claim.turn);
        let elsewhere = self.mirror_position.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((session, first)) = elsewhere {
            hub.drop_text_from(&session, first);
        }
    }

    pub fn has_waited(&self) -> bool {
        self.waited.load(Ordering::Relaxed)
    }

    pub fn mark_waited(&self) {
        self.waited.store(true, Ordering::Relaxed);
    }

    pub(super) fn set_slot(&self, slot: LaneSlot) {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(slot);
    }

    pub(super) fn release_slot(&self) -> Option<LaneSlot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Starts waiting for a person or another agent. Until the guard is dropped the slot is free for others, and the
    /// time limit and the stall timer stand still: the wait has a timeout of its own.
    pub fn begin_wait(self: &Arc<Self>, lanes: &Arc<LaneScheduler>) -> TurnWaitGuard {
        drop(self.release_slot());
        self.waits.lock().unwrap_or_else(PoisonError::into_inner).since = Some(Instant::now());
        TurnWaitGuard { running: Arc::clone(self), lanes: Arc::clone(lanes) }
    }

    /// Returns how long it has worked, without waits.
    pub fn worked_time(&self) -> Duration {
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = waits.over + waits.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.began.elapsed().saturating_sub(waited)
    }

    pub fn take_rows(&self) -> Option<TurnRows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Sets the current model call, or `None` when it is stored.
    pub fn set_model_call(&self, spent: Option<UnstoredModelCall>) {
        *self.model_call.lock().unwrap_or_else(PoisonError::into_inner) = spent;
    }

    pub fn model_call(&self) -> Option<UnstoredModelCall> {
        self.model_call.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_ending(&self, ending: bool) {
        self.ending.store(ending, Ordering::SeqCst);
    }

    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    pub fn set_next_turn(&self, next: Option<ClaimWithRows>) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = next;
    }

    pub(super) fn take_next(&self) -> Option<ClaimWithRows> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn note_progress(&self) {
        self.progress.store(self.age_ms(), Ordering::Relaxed);
    }

    pub fn silent_ms(&self) -> u64 {
        if self.waits.lock().unwrap_or_else(PoisonError::into_inner).since.is_some() {
            return 0;
        }
        self.age_ms().saturating_sub(self.progress.load(Ordering::Relaxed))
    }

    pub fn age_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub fn stop(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.cancel.notify_one();
    }
}

/// A turn's wait for a person or another agent, which ends on drop. The turn then gets a slot immediately, because it
/// has already started.
pub(crate) struct TurnWaitGuard {
    running: Arc<RunningTurn>,
    lanes: Arc<LaneScheduler>,
}

impl Drop for TurnWaitGuard {
    fn drop(&mut self) {
        self.running.note_progress();
        self.running.set_slot(self.lanes.add_slot(self.running.claim.lane));
        let mut waits = self.running.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let since = waits.since.take();
        waits.over += since.map_or(Duration::ZERO, |since| since.elapsed());
    }
}
