//! Statistics of delegations between agents: how they end and how long they take, counted since this process started.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use polyclaw_domain::id::AgentId;
use polyclaw_domain::run::{RunKind, RunStatus, SubagentRun};
use polyclaw_domain::time::Millis;
use polyclaw_store::runs;
use serde::Serialize;

use crate::core::Engine;
use crate::error::Result;

/// Maximum number of durations kept for each pair.
const RETAINED_SAMPLES: usize = 1_000;
/// How long a duration counts.
const LATENCY_WINDOW_MS: i64 = 60 * 60_000;

/// Maximum number of pairs counted when a model may have invented the target.
const MAX_COUNTED_PAIRS: usize = 500;

/// A delegation that has ended.
#[derive(Clone, Debug)]
pub(crate) struct DelegationEnd {
    pub caller: AgentId,
    pub target: AgentId,
    pub status: RunStatus,
    pub took_ms: i64,
}

impl DelegationEnd {
    /// Returns `None` for sub-agents: only delegations are counted.
    pub fn from_run(run: &SubagentRun, now: Millis) -> Option<Self> {
        (run.kind == RunKind::Delegate).then(|| Self {
            caller: run.caller.clone(),
            target: run.agent.clone(),
            status: run.status,
            took_ms: now.since(run.created_at),
        })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DelegationCounts {
    pub completed: u64,
    pub timeout: u64,
    pub error: u64,
    pub cancelled: u64,
    /// Never started: not allowed, too deep or too many.
    pub rejected: u64,
}

/// Of delegations that ended in the last hour; null if there were none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DelegationLatency {
    pub p50_ms: Option<i64>,
    pub p95_ms: Option<i64>,
}

/// An agent and another that it delegates to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DelegationEdge {
    pub caller: AgentId,
    pub target: AgentId,
    /// Running now, on all nodes.
    pub active: i64,
    pub counts: DelegationCounts,
    pub latency: DelegationLatency,
}

#[derive(Default)]
struct DelegationRecord {
    counts: DelegationCounts,
    /// When each ended, and how long it took.
    times: VecDeque<(Millis, i64)>,
}

#[derive(Default)]
pub(crate) struct DelegationStats(Mutex<BTreeMap<(AgentId, AgentId), DelegationRecord>>);

impl DelegationStats {
    pub fn count_end(&self, ended: &DelegationEnd, now: Millis) {
        self.update_record(&ended.caller, &ended.target, |record| {
            let counts = &mut record.counts;
            *match ended.status {
                RunStatus::Ok => &mut counts.completed,
                RunStatus::Timeout => &mut counts.timeout,
                RunStatus::Cancelled => &mut counts.cancelled,
                RunStatus::Error | RunStatus::Running => &mut counts.error,
            } += 1;
            record.times.push_back((now, ended.took_ms));
            if record.times.len() > RETAINED_SAMPLES {
                record.times.pop_front();
            }
        });
    }

    pub fn count_rejection(&self, caller: &AgentId, target: &AgentId) {
        self.update_record(caller, target, |record| record.counts.rejected += 1);
    }

    /// Counts a rejection whose target was named by a model and may not exist. The number of pairs is bounded.
    pub fn count_rejection_by_name(&self, caller: &AgentId, target: Option<&str>) {
        let Some(target) = target.and_then(|target| AgentId::parse(target).ok()) else { return };
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = all.len() < MAX_COUNTED_PAIRS || all.contains_key(&(caller.clone(), target.clone()));
        drop(all);
        if is_known {
            self.count_rejection(caller, &target);
        }
    }

    fn update_record(&self, caller: &AgentId, target: &AgentId, note: impl FnOnce(&mut DelegationRecord)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        note(all.entry((caller.clone(), target.clone())).or_default());
    }

    /// Returns the counts together with the running delegations.
    fn snapshot(&self, active: &[(AgentId, AgentId, i64)], now: Millis) -> Vec<DelegationEdge> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<(AgentId, AgentId)> = all.keys().cloned().collect();
        names.extend(active.iter().map(|(caller, target, _)| (caller.clone(), target.clone())));
        names.sort();
        names.dedup();
        let pair = |(caller, target): (AgentId, AgentId)| {
            let at_work = active.iter().find(|(from, to, _)| (from, to) == (&caller, &target));
            let record = all.get(&(caller.clone(), target.clone()));
            DelegationEdge {
                active: at_work.map_or(0, |(_, _, count)| *count),
                counts: record.map(|record| record.counts.clone()).unwrap_or_default(),
                latency: record.map(|record| latency_percentiles(&record.times, now)).unwrap_or_default(),
                caller,
                target,
            }
        };
        names.into_iter().map(pair).collect()
    }
}

fn latency_percentiles(times: &VecDeque<(Millis, i64)>, now: Millis) -> DelegationLatency {
    let recent = times.iter().filter(|(at, _)| now.since(*at) <= LATENCY_WINDOW_MS);
    let mut took: Vec<i64> = recent.map(|(_, took)| *took).collect();
    took.sort_unstable();
    let at = |percent: usize| took.get((took.len() * percent).div_ceil(100).saturating_sub(1)).copied();
    DelegationLatency { p50_ms: at(50), p95_ms: at(95) }
}

impl Engine {
    /// Returns every pair seen since the start or running now.
    pub async fn list_delegations(&self) -> Result<Vec<DelegationEdge>> {
        let active = self.db().read(runs::count_running_delegates).await?;
        Ok(self.delegation_stats.snapshot(&active, self.now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> AgentId {
        AgentId::parse(text).unwrap()
    }

    fn ended(status: RunStatus, took_ms: i64) -> DelegationEnd {
        DelegationEnd { caller: id("a"), target: id("b"), status, took_ms }
    }

    #[test]
    fn all_ends_are_counted_but_latency_uses_recent_runs() {
        let pairs = DelegationStats::default();
        pairs.count_end(&ended(RunStatus::Ok, 1_000_000), Millis(0));
        for took in 1..=100 {
            pairs.count_end(&ended(RunStatus::Ok, took), Millis(LATENCY_WINDOW_MS + 1));
        }
        for status in [RunStatus::Timeout, RunStatus::Error, RunStatus::Cancelled] {
            pairs.count_end(&ended(status, 50), Millis(LATENCY_WINDOW_MS + 1));
        }
        pairs.count_rejection(&id("a"), &id("c"));
        let listed =
            pairs.snapshot(&[(id("a"), id("b"), 2), (id("x"), id("y"), 1)], Millis(LATENCY_WINDOW_MS + 1));
        let names: Vec<_> = listed.iter().map(|pair| (pair.caller.as_str(), pair.target.as_str())).collect();
        assert_eq!(names, [("a", "b"), ("a", "c"), ("x", "y")]);
        let counts = DelegationCounts { completed: 101, timeout: 1, error: 1, cancelled: 1, rejected: 0 };
        assert_eq!((&listed[0].counts, listed[0].active), (&counts, 2));
        assert_eq!(listed[0].latency, DelegationLatency { p50_ms: Some(50), p95_ms: Some(95) });
        assert_eq!((listed[1].counts.rejected, listed[1].latency), (1, DelegationLatency::default()));
        assert_eq!(listed[2].active, 1);
    }

    #[test]
    fn at_most_thousand_latency_samples_are_kept() {
        let pairs = DelegationStats::default();
        (0..1_500).for_each(|took| pairs.count_end(&ended(RunStatus::Ok, took), Millis(1)));
        let latency = pairs.snapshot(&[], Millis(1))[0].latency;
        assert_eq!(latency, DelegationLatency { p50_ms: Some(999), p95_ms: Some(1_449) });
    }
}
