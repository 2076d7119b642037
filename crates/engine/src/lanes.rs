//! Lanes of this node: how many turns of each kind may run, and where a job may be ready. Shared by the worker,
//! which claims queued turns, and by ingress, which starts a turn immediately if its lane is empty.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use polyclaw_domain::job::JobLane;
use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct LaneScheduler {
    lanes: [LaneState; JobLane::ALL.len()],
    wake: Notify,
}

#[derive(Default)]
struct LaneState {
    used: AtomicUsize,
    /// A job may be ready in this lane.
    ready: AtomicBool,
    /// A job may be waiting for a slot; the lane is woken when one is free.
    full: AtomicBool,
}

/// Permission to run one turn in a lane; released when dropped.
pub(crate) struct LaneSlot {
    lanes: Arc<LaneScheduler>,
    lane: JobLane,
}

impl LaneScheduler {
    fn lane_state(&self, lane: JobLane) -> &LaneState {
        &self.lanes[lane as usize]
    }

    /// Marks a lane as having a ready job.
    pub fn wake(&self, lane: JobLane) {
        self.lane_state(lane).ready.store(true, Ordering::SeqCst);
        self.wake.notify_one();
    }

    /// Marks all lanes, if another node did not say which one.
    pub fn wake_all(&self) {
        self.lanes.iter().for_each(|state| state.ready.store(true, Ordering::SeqCst));
        self.wake.notify_one();
    }

    /// Returns after `wake` or `wake_all` was called.
    pub async fn wait_for_wake(&self) {
        self.wake.notified().await;
    }

    /// Takes the lanes that were marked ready since the last call.
    pub fn take_ready(&self) -> Vec<JobLane> {
        JobLane::ALL
            .into_iter()
            .filter(|lane| self.lane_state(*lane).ready.swap(false, Ordering::SeqCst))
            .collect()
    }

    /// Takes a slot for a new turn. `None`: the lane is full, or other turns may be waiting and go first.
    pub fn try_enter(self: &Arc<Self>, lane: JobLane, slots: usize) -> Option<LaneSlot> {
        let state = self.lane_state(lane);
        let others = state.ready.load(Ordering::SeqCst) || state.full.load(Ordering::SeqCst);
        if others { None } else { self.try_take_slot(lane, slots) }
    }

    /// Takes all free slots of a lane with waiting turns. If there is none, the lane is woken when one is free.
    pub fn take_free_slots(self: &Arc<Self>, lane: JobLane, slots: usize) -> Vec<LaneSlot> {
        let free = |_| self.try_take_slot(lane, slots);
        let taken: Vec<LaneSlot> = (0..slots).map_while(free).collect();
        if !taken.is_empty() {
            return taken;
        }
        self.mark_full(lane, slots);
        taken
    }

    /// Marks that more turns may wait than there are slots. Wakes the lane if a slot was freed in the meantime.
    pub fn mark_full(&self, lane: JobLane, slots: usize) {
        let state = self.lane_state(lane);
        state.full.store(true, Ordering::SeqCst);
        if self.used_slots(lane) < slots && state.full.swap(false, Ordering::SeqCst) {
            self.wake(lane);
        }
    }

    pub fn used_slots(&self, lane: JobLane) -> usize {
        self.lane_state(lane).used.load(Ordering::SeqCst)
    }

    fn try_take_slot(self: &Arc<Self>, lane: JobLane, slots: usize) -> Option<LaneSlot> {
        let one_more = |used| (used < slots).then_some(used + 1);
        let used = &self.lane_state(lane).used;
        used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more).ok()?;
        Some(LaneSlot { lanes: Arc::clone(self), lane })
    }

    /// Adds a slot for a running turn that was taken over, even beyond the limit.
    pub fn add_slot(self: &Arc<Self>, lane: JobLane) -> LaneSlot {
        self.lane_state(lane).used.fetch_add(1, Ordering::SeqCst);
        LaneSlot { lanes: Arc::clone(self), lane }
    }
}

impl Drop for LaneSlot {
    fn drop(&mut self) {
        let state = self.lanes.lane_state(self.lane);
        state.used.fetch_sub(1, Ordering::SeqCst);
        if state.full.swap(false, Ordering::SeqCst) {
            self.lanes.wake(self.lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_turn_enters_lane_only_if_none_waits() {
        let lanes = Arc::new(LaneScheduler::default());
        let first = lanes.try_enter(JobLane::Main, 1);
        assert!(first.is_some() && lanes.try_enter(JobLane::Main, 1).is_none());
        assert!(lanes.try_enter(JobLane::Cron, 1).is_some(), "lanes are apart");
        assert!(lanes.take_free_slots(JobLane::Main, 1).is_empty());
        drop(first);
        assert!(lanes.try_enter(JobLane::Main, 1).is_none(), "the one that waited goes first");
        assert_eq!(lanes.take_ready(), [JobLane::Main]);
        let slots = lanes.take_free_slots(JobLane::Main, 3);
        assert_eq!(slots.len(), 3);
        drop(slots);
        assert!(lanes.take_ready().is_empty() && lanes.try_enter(JobLane::Main, 1).is_some());
    }
}
