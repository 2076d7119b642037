//! Errands: what an agent does at set times without being asked, a message of `[[cron]]` or a heartbeat.

use std::fmt::Write;

use crate::channel::Address;
use crate::config::CatchUp;
use crate::id::AgentId;
use crate::key::SessionKey;
use crate::schedule::{Missed, Schedule};
use crate::time::{Millis, length};

/// Later than this a run counts as missed: nothing was there to begin it.
pub const GRACE_MS: i64 = 60_000;

#[derive(Clone, Debug)]
pub struct Errand {
    pub id: String,
    /// What its schedule was made of: with another one it begins anew.
    pub rule: String,
    pub schedule: Schedule,
    pub agent: AgentId,
    pub session: SessionKey,
    pub kind: ErrandKind,
    /// Where the answer goes; without it the answer stays in the conversation.
    pub address: Option<Address>,
    pub catch_up: CatchUp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrandKind {
    /// Tells the agent this.
    Tell(String),
    /// Lets the agent look at its `HEARTBEAT.md`, if it has one.
    Heartbeat,
}

/// What is to be done about due times that have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    pub at: Millis,
    pub late_ms: i64,
    /// Due times before this one that nobody looked after.
    pub missed: usize,
    pub runs: bool,
}

impl Errand {
    /// The newest due time after the last one looked after, and whether it still runs.
    pub fn due(&self, last: Millis, now: Millis) -> Option<Due> {
        let Missed { last: at, count } = self.schedule.missed(last, now)?;
        let late_ms = now.since(at);
        let runs = late_ms <= GRACE_MS || self.catch_up == CatchUp::Once;
        Some(Due { at, late_ms, missed: count - 1, runs })
    }

    /// The same run has the same key, whichever node begins it and however often.
    pub fn key(&self, due: Millis) -> String {
        format!("schedule:{}:{}", self.id, due.0)
    }
}

impl Due {
    /// What a late run is told about it.
    pub fn remark(&self) -> Option<String> {
        if self.late_ms <= GRACE_MS && self.missed == 0 {
            return None;
        }
        let mut remark = format!("(This was due at {}", self.at);
        if self.late_ms > GRACE_MS {
            let _ = write!(remark, " and is {} late", length(self.late_ms));
        }
        match self.missed {
            0 => {}
            1 => remark.push_str("; one run before it was missed"),
            Missed::COUNTED.. => remark.push_str("; very many runs before it were missed"),
            missed => {
                let _ = write!(remark, "; {missed} runs before it were missed");
            }
        }
        remark.push_str(".)");
        Some(remark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errand(rule: &str, catch_up: CatchUp) -> Errand {
        Errand {
            id: "e".into(),
            rule: rule.into(),
            schedule: Schedule::parse(rule, None).unwrap(),
            agent: AgentId::main(),
            session: SessionKey::cron("e"),
            kind: ErrandKind::Tell("x".into()),
            address: None,
            catch_up,
        }
    }

    #[test]
    fn what_is_late_runs_by_policy_and_says_so() {
        let hour = 3_600_000;
        let hourly = errand("every 1h", CatchUp::Skip);
        assert_eq!(hourly.due(Millis(0), Millis(hour - 1)), None);
        let on_time = hourly.due(Millis(0), Millis(hour + 5)).unwrap();
        assert_eq!((on_time.at, on_time.runs, on_time.remark()), (Millis(hour), true, None));
        let late = hourly.due(Millis(0), Millis(5 * hour + 120_000)).unwrap();
        assert_eq!((late.at, late.missed, late.runs), (Millis(5 * hour), 4, false));
        let once = errand("every 1h", CatchUp::Once).due(Millis(0), Millis(5 * hour + 120_000)).unwrap();
        assert!(once.runs);
        let said = once.remark().unwrap();
        assert!(said.ends_with("and is 2 min late; 4 runs before it were missed.)"), "{said}");
    }
}
