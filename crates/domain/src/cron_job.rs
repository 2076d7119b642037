//! Errands: what an agent does at set times without being asked, a message of `[[cron]]` or a heartbeat.

use std::fmt::Write;

use crate::channel::ChatAddress;
use crate::config::{CatchUp, CronJobConfig};
use crate::id::AgentId;
use crate::schedule::{InvalidSchedule, MissedRuns, Schedule};
use crate::session_key::SessionKey;
use crate::time::{Millis, format_duration};

/// Later than this a run counts as missed: nothing was there to begin it.
pub const LATE_GRACE_MS: i64 = 60_000;

#[derive(Clone, Debug)]
pub struct CronJob {
    pub id: String,
    /// Its schedule as it was written.
    pub written: String,
    /// UTC where none is named.
    pub timezone: Option<String>,
    pub schedule: Schedule,
    pub agent: AgentId,
    pub session: SessionKey,
    pub kind: CronJobKind,
    /// Where the answer goes; without it the answer stays in the conversation.
    pub address: Option<ChatAddress>,
    pub catch_up: CatchUp,
    /// Whether it comes by itself. One that does not can be run by hand.
    pub enabled: bool,
    /// For whom an agent made it, as the rules about senders name them: those hold for its runs. Nobody where a person did.
    pub requested_by: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CronJobKind {
    /// Tells the agent this.
    Message(String),
    /// Lets the agent look at its `HEARTBEAT.md`, if it has one.
    Heartbeat,
}

/// What is to be done about due times that have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueRun {
    pub at: Millis,
    pub late_ms: i64,
    /// Due times before this one that nobody looked after; at [`Due::COUNTED`], that many or more.
    pub missed: usize,
    pub runs: bool,
}

/// Nodes whose clocks differ are not this far apart: a due time looked after that lies further ahead was looked after
/// while the clock was wrong.
const MAX_CLOCK_SKEW_MS: i64 = 5 * 60_000;

/// The clock has been set back since a due time was looked after.
pub fn is_clock_set_back(last: Millis, now: Millis) -> bool {
    last.since(now) > MAX_CLOCK_SKEW_MS
}

impl CronJob {
    /// What a job tells an agent, in a conversation of the job's own.
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

    /// What its due times follow from: with another rule it begins anew.
    pub fn schedule_text(&self) -> String {
        format!("{} {}", self.written, self.timezone.as_deref().unwrap_or("UTC"))
    }

    /// When it is begun next. What was looked after already does not come again.
    pub fn next_due(&self, last: Option<Millis>, now: Millis) -> Option<Millis> {
        let last = last.filter(|last| !is_clock_set_back(*last, now));
        self.schedule.next(last.map_or(now, |last| last.max(now)))
    }

    /// The newest due time after the last one looked after, and whether it still runs.
    pub fn newest_due(&self, last: Millis, now: Millis) -> Option<DueRun> {
        let MissedRuns { last: at, count } = self.schedule.count_missed(last, now)?;
        let late_ms = now.since(at);
        let runs = late_ms <= LATE_GRACE_MS || self.catch_up == CatchUp::Once;
        Some(DueRun { at, late_ms, missed: count - 1, runs })
    }

    /// The same run has the same key, whichever node begins it and however often.
    pub fn run_key(&self, due: Millis) -> String {
        format!("schedule:{}:{}", self.id, due.0)
    }
}

impl DueRun {
    const MAX_COUNTED_RUNS: usize = MissedRuns::MAX_COUNTED_RUNS - 1;

    /// More were missed than anybody counted.
    pub fn is_count_capped(&self) -> bool {
        self.missed >= Self::MAX_COUNTED_RUNS
    }

    /// What a late run is told about it.
    pub fn late_remark(&self) -> Option<String> {
        if self.late_ms <= LATE_GRACE_MS && self.missed == 0 {
            return None;
        }
        let mut remark = format!("(This was due at {}", self.at);
        if self.late_ms > LATE_GRACE_MS {
            let _ = write!(remark, " and is {} late", format_duration(self.late_ms));
        }
        match self.missed {
            0 => {}
            1 => remark.push_str("; one run before it was missed"),
            missed => {
                let bound = if self.is_count_capped() { "at least " } else { "" };
                let _ = write!(remark, "; {bound}{missed} runs before it were missed");
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
    fn what_is_late_runs_by_policy_and_says_so() {
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
        assert!(text.ends_with("and is 2 min late; 4 runs before it were missed.)"), "{text}");
        let far = errand("every 1h", CatchUp::Once).newest_due(Millis(0), Millis(5_000 * hour)).unwrap();
        let text = far.late_remark().unwrap();
        assert!(text.ends_with("; at least 999 runs before it were missed.)"), "{text}");
    }

    #[test]
    fn what_comes_next_is_behind_what_was_looked_after_unless_the_clock_was_set_back() {
        let hour = 3_600_000;
        let hourly = errand("every 1h", CatchUp::Skip);
        let now = Millis(10 * hour - 60_000);
        for (last, next) in [(None, 10), (Some(9), 10), (Some(10), 11), (Some(500), 10)] {
            let last = last.map(|hours| Millis(hours * hour));
            assert_eq!(hourly.next_due(last, now), Some(Millis(next * hour)), "{last:?}");
        }
    }
}
