//! Counts and durations of each agent's ended turns since this process started.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use polyclaw_domain::job::JobState;

use crate::core::Engine;

/// Upper bounds of the histogram, in milliseconds.
pub const TURN_BUCKETS_MS: [u64; 9] = [100, 500, 1_000, 2_500, 5_000, 15_000, 60_000, 300_000, 1_800_000];

/// Maximum agents with metrics of their own, so that metrics stay bounded.
const MAX_COUNTED_AGENTS: usize = 200;
/// Label under which all other agents are counted.
const OTHER_AGENTS_LABEL: &str = "_other";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentTurns {
    pub done: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub steered: u64,
    /// Ended turns per duration bucket; longer ones are only in `count`.
    pub buckets: [u64; TURN_BUCKETS_MS.len()],
    pub count: u64,
    pub sum_ms: u64,
}

#[derive(Default)]
pub(crate) struct AgentTurnCounters(Mutex<BTreeMap<String, AgentTurns>>);

impl AgentTurnCounters {
    pub fn count_turn(&self, agent: &str, state: JobState, took_ms: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = all.contains_key(agent) || all.len() < MAX_COUNTED_AGENTS;
        let turns = all.entry(if is_known { agent } else { OTHER_AGENTS_LABEL }.to_owned()).or_default();
        match state {
            JobState::Done => turns.done += 1,
            JobState::Cancelled => turns.cancelled += 1,
            JobState::Steered => turns.steered += 1,
            _ => turns.failed += 1,
        }
        turns.count += 1;
        turns.sum_ms += took_ms;
        if let Some(at) = TURN_BUCKETS_MS.iter().position(|bound| took_ms <= *bound) {
            turns.buckets[at] += 1;
        }
    }
}

impl Engine {
    /// Turn counts since the start, by agent id.
    pub fn agent_turns(&self) -> BTreeMap<String, AgentTurns> {
        self.turn_counters.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_beyond_the_limit_are_counted_together() {
        let counters = AgentTurnCounters::default();
        for n in 0..=MAX_COUNTED_AGENTS + 5 {
            counters.count_turn(&format!("a{n}"), JobState::Done, 400);
        }
        counters.count_turn("a0", JobState::Failed, u64::from(u32::MAX));
        let all = counters.0.lock().unwrap();
        assert_eq!((all.len(), all[OTHER_AGENTS_LABEL].done), (MAX_COUNTED_AGENTS + 1, 6));
        let first = &all["a0"];
        assert_eq!((first.done, first.failed, first.count, first.buckets[1]), (1, 1, 2, 1));
        assert_eq!(first.buckets.iter().sum::<u64>(), 1, "what took longer than any bound is in none");
    }
}
