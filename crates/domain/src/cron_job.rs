//! Cron jobs: what an agent does at set times without being asked, from `[[cron]]`, a heartbeat or an agent's own
//! request.

use std::fmt::Write;

use crate::channel::ChatAddress;
use crate::config::{CatchUp, CronJobConfig};
use crate::id::AgentId;
use crate::schedule::{InvalidSchedule, MissedRuns, Schedule};
use crate::session_key::SessionKey;
use crate::time::{Millis, format_duration};

/// A run that starts later than this counts as missed: no node was there to start it.
pub const LATE_GRACE_MS: i64 = 60_000;

#[derive(Clone, Debug)]
pub struct CronJob {
    pub id: String,
    /// The schedule as it was written.
    pub written: String,
    /// UTC if `None`.
    pub timezone: Option<String>,
    pub schedule: Schedule,
    pub agent: AgentId,
    pub session: SessionKey,
    pub kind: CronJobKind,
    /// Where the answer goes. `None` stores it in the conversation only.
    pub address: Option<ChatAddress>,
    pub catch_up: CatchUp,
    /// Whether the schedule starts runs. A disabled job can still be run by hand.
    pub enabled: bool,
    /// Senders on whose behalf an agent created the job, as sender rules name them. Those rules apply to its runs.
    /// Empty if a person created it.
    pub requested_by: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CronJobKind {
    /// Sends the agent this message.
    Message(String),
    /// Lets the agent check its `HEARTBEAT.md`, if it has one.
    Heartbeat,
}

/// The newest due time of a job that has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueRun {
    pub at: Millis,
    pub late_ms: i64,
    /// Number of earlier due times that were missed; at the counting limit, that many or more.
    pub missed: usize,
    pub runs: bool,
}

/// Maximum difference between the clocks of nodes. A handled due time further in the future was handled while a clock
/// was wrong.
const MAX_CLOCK_SKEW_MS: i64 = 5 * 60_000;

/// Returns whether the clock was set back since a due time was handled.
pub fn is_clock_set_back(last: Millis, now: Millis) -> bool {
    last.since(now) > MAX_CLOCK_SKEW_MS
}

impl CronJob {
    /// Returns a job of the config file. Its conversation is its own.
    pub fn from_config(
        job: &CronJobConfig,
        default: &AgentId,
        address: Option<ChatAddress>,
    ) -> Result<Self, InvalidSchedule> {
        Ok(Self {
            id: job.id.clone(),
            written: job.schedule.clone(),
            timezone: job.timezone.clone(),
            schedule: job.parse_schedule()?,
            agent: job.agent.clone().unwrap_or_else(|| default.clone()),
            session: SessionKey::for_cron_job(&job.id),
            kind: CronJobKind::Message(job.message.clone()),
            address,
            catch_up: job.catch_up,
            enabled: job.enabled,
            requested_by: Vec::new(),
        })
    }

    /// Returns the schedule and time zone as text. If it changes, the job's due times start over.
    pub fn schedule_text(&self) -> String {
        format!("{} {}", self.written, self.timezone.as_deref().unwrap_or("UTC"))
    }

    /// Returns the next due time. Due times that were handled do not come again.
    pub fn next_due(&self, last: Option<Millis>, now: Millis) -> Option<Millis> {
        let last = last.filter(|last| !is_clock_set_back(*last, now));
        self.schedule.next(last.map_or(now, |last| last.max(now)))
    }

    /// Returns the newest due time after the last handled one, and whether it still runs.
    pub fn newest_due(&self, last: Millis, now: Millis) -> Option<DueRun> {
        let MissedRuns { last: at, count } = self.schedule.count_missed(last, now)?;
        let late_ms = now.since(at);
        let runs = late_ms <= LATE_GRACE_MS || self.catch_up == CatchUp::Once;
        Some(DueRun { at, late_ms, missed: count - 1, runs })
    }

    /// Returns the idempotency key of a run: the same on every node and on every attempt.
    pub fn run_key(&self, due: Millis) -> String {
        format!("schedule:{}:{}", self.id, due.0)
    }
}

impl DueRun {
    const MAX_COUNTED_RUNS: usize = MissedRuns::MAX_COUNTED_RUNS - 1;

    /// Returns whether more runs were missed than were counted.
    pub fn is_count_capped(&self) -> bool {
        self.missed >= Self::MAX_COUNTED_RUNS
    }

    /// Returns the remark added to the message of a late run.
    pub fn late_remark(&self) -> Option<String> {
        if self.late_ms <= LATE_GRACE_MS && self.missed == 0 {
            return None;
        }
        let mut remark = format!("(This run was due at {}", self.at);
        if self.late_ms > LATE_GRACE_MS {
            let _ = write!(remark, " and is {} late", format_duration(self.late_ms));
        }
        match self.missed {
            0 => {}
            1 => remark.push_str("; one earlier run was missed"),
            missed => {
                let bound = if self.is_count_capped() { "at least " } else { "" };
                let _ = write!(remark, "; {bound}{missed} earlier runs were missed");
            }
        }
        remark.push_str(".)");
        Some(remark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errand(rule: &str, catch_up: CatchUp) -> CronJob {
        CronJob {
            id: "e".into(),
            written: rule.into(),
            timezone: None,
            schedule: Schedule::parse(rule, None).unwrap(),
            agent: AgentId::main(),
            session: SessionKey::for_cron_job("e"),
            kind: CronJobKind::Message("x".into()),
            address: None,
            catch_up,
            enabled: true,
            requested_by: Vec::new(),
        }
    }

    #[test]
    fn late_cron_job_follows_catch_up_policy_with_remark() {
        let hour = 3_600_000;
        let hourly = errand("every 1h", CatchUp::Skip);
        assert_eq!(hourly.newest_due(Millis(0), Millis(hour - 1)), None);
        let on_time = hourly.newest_due(Millis(0), Millis(hour + 5)).unwrap();
        assert_eq!((on_time.at, on_time.runs, on_time.late_remark()), (Millis(hour), true, None));
        let late = hourly.newest_due(Millis(0), Millis(5 * hour + 120_000)).unwrap();
        assert_eq!((late.at, late.missed, late.runs), (Millis(5 * hour), 4, false));
        let once =
            errand("every 1h", CatchUp::Once).newest_due(Millis(0), Millis(5 * hour + 120_000)).unwrap();
        assert!(once.runs);
        let text = once.late_remark().unwrap();
        assert!(text.ends_with("and is 2 min late; 4 earlier runs were missed.)"), "{text}");
        let far = errand("every 1h", CatchUp::Once).newest_due(Millis(0), Millis(5_000 * hour)).unwrap();
        let text = far.late_remark().unwrap();
        assert!(text.ends_with("; at least 999 earlier runs were missed.)"), "{text}");
    }

    #[test]
    fn next_due_follows_last_run_unless_clock_was_set_back() {
        let hour = 3_600_000;
        let hourly = errand("every 1h", CatchUp::Skip);
        let now = Millis(10 * hour - 60_000);
        for (last, next) in [(None, 10), (Some(9), 10), (Some(10), 11), (Some(500), 10)] {
            let last = last.map(|hours| Millis(hours * hour));
            assert_eq!(hourly.next_due(last, now), Some(Millis(next * hour)), "{last:?}");
        }
    }
}
