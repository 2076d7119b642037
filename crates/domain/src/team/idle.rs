//! A member whose turn has ended: why it does nothing, and whether its lead is woken for that.

use serde::{Deserialize, Serialize};

/// Why a member does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Idle {
    /// It could take something up.
    Available,
    /// It holds a task, or waits for sessions of its own.
    Waiting,
    /// Everything that is left waits for something else.
    Blocked,
    /// Its turn did not end well.
    Failed,
}

impl Idle {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
        }
    }
}

/// What is known of a member as its turn ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    pub turn_failed: bool,
    pub holds_task: bool,
    pub has_children: bool,
    /// Tasks that wait for others.
    pub blocked: usize,
    /// Tasks that anybody could take.
    pub free: usize,
}

pub fn reason(facts: Facts) -> Idle {
    match facts {
        Facts { turn_failed: true, .. } => Idle::Failed,
        Facts { holds_task: true, .. } | Facts { has_children: true, .. } => Idle::Waiting,
        Facts { blocked: 1.., free: 0, .. } => Idle::Blocked,
        _ => Idle::Available,
    }
}

/// Whether the lead is woken now. While others are at work it is told with whatever wakes it next, so that a team
/// that comes to rest costs its lead one turn, not one for each member. Who waits for sessions of its own goes on when
/// they are done; who merely holds a task does not go on by itself.
pub fn wakes_lead(facts: Facts, others_at_work: bool, is_shutting_down: bool) -> bool {
    let idle = reason(facts);
    let goes_on = idle == Idle::Waiting && facts.has_children;
    !is_shutting_down && !goes_on && (idle == Idle::Failed || !others_at_work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_idle_for_a_reason() {
        let none = Facts::default();
        for (facts, expected) in [
            (none, Idle::Available),
            (Facts { free: 2, blocked: 1, ..none }, Idle::Available),
            (Facts { blocked: 1, ..none }, Idle::Blocked),
            (Facts { holds_task: true, blocked: 1, ..none }, Idle::Waiting),
            (Facts { has_children: true, ..none }, Idle::Waiting),
            (Facts { turn_failed: true, holds_task: true, ..none }, Idle::Failed),
        ] {
            assert_eq!(reason(facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn only_the_last_to_rest_wakes_the_lead() {
        let none = Facts::default();
        let failed = Facts { turn_failed: true, ..none };
        let holds = Facts { holds_task: true, ..none };
        for (facts, others_at_work, expected) in [
            (none, false, true),
            (none, true, false),
            (failed, true, true),
            (holds, false, true),
            (holds, true, false),
            (Facts { has_children: true, ..holds }, false, false),
            (Facts { has_children: true, ..none }, false, false),
        ] {
            assert_eq!(wakes_lead(facts, others_at_work, false), expected, "{facts:?} {others_at_work}");
        }
        assert!(!wakes_lead(failed, false, true), "none while shutting down");
    }
}
