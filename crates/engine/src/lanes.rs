//! Lanes on this node: how many turns of each kind run at once, and where a job may be ready. Shared by the
//! worker, which claims what waits, and by ingress, which starts a turn at once where nothing does.

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
    /// A job may be ready here.
    ready: AtomicBool,
    /// Had no room for what may be ready: looked at again when a slot is free.
    full: AtomicBool,
}

/// The right to run one turn in a lane; free again when dropped.
pub(crate) struct LaneSlot {
    lanes: Arc<LaneScheduler>,
    lane: JobLane,
}

impl LaneScheduler {
    fn lane_state(&self, lane: JobLane) -> &LaneState {
        &self.lanes[lane as usize]
    }

    /// Says that a job of this lane may be ready.
    pub fn wake(&self, lane: JobLane) {
        self.lane_state(lane).ready.store(true, Ordering::SeqCst);
        self.wake.notify_one();
    }

    /// The same for every lane, where another node did not say which.
    pub fn wake_all(&self) {
        self.lanes.iter().for_each(|state| state.ready.store(true, Ordering::SeqCst));
        self.wake.notify_one();
    }

    /// Returns when one of the two above was called.
    pub async fn wait_for_wake(&self) {
        self.wake.notified().await;
    }

    /// The lanes in which a job may be ready since this was last asked.
    pub fn take_ready(&self) -> Vec<JobLane> {
        JobLane::ALL
            .into_iter()
            .filter(|lane| self.lane_state(*lane).ready.swap(false, Ordering::SeqCst))
            .collect()
    }

    /// A slot for a turn that has only now been asked for. None if others may wait: it is not its turn yet.
    pub fn try_enter(self: &Arc<Self>, lane: JobLane, slots: usize) -> Option<LaneSlot> {
        let state = self.lane_state(lane);
        let others = state.ready.load(Ordering::SeqCst) || state.full.load(Ordering::SeqCst);
        if others { None } else { self.try_take_slot(lane, slots) }
    }

    /// Every free slot of a lane in which something waits. With none, its lane is woken when there is one.
    pub fn take_free_slots(self: &Arc<Self>, lane: JobLane, slots: usize) -> Vec<LaneSlot> {
        let free = |_| self.try_take_slot(lane, slots);
        let taken: Vec<LaneSlot> = (0..slots).map_while(free).collect();
        if !taken.is_empty() {
            return taken;
        }
        self.mark_full(lane, slots);
        taken
    }

    /// More may wait than there was room for: the lane is woken when there is some, now if it came before the mark.
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

    /// A slot for a turn that runs already and was taken over: it is not made to wait.
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
    fn a_newcomer_enters_only_where_nobody_waits() {
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
