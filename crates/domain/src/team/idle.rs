//! Idle members: why a member does nothing after its turn, and whether its lead is woken.

use serde::{Deserialize, Serialize};

/// Why a member is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleReason {
    /// It could take a task.
    Available,
    /// It holds a task, or waits for its own sub-agents.
    Waiting,
    /// All remaining tasks are blocked.
    Blocked,
    /// Its turn failed.
    Failed,
}

impl IdleReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
        }
    }
}

/// Facts about a member at the end of its turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemberTurnFacts {
    pub turn_failed: bool,
    pub holds_task: bool,
    pub has_children: bool,
    /// Number of blocked tasks.
    pub blocked: usize,
    /// Number of tasks that any member could claim.
    pub free: usize,
}

pub fn idle_reason(facts: MemberTurnFacts) -> IdleReason {
    match facts {
        MemberTurnFacts { turn_failed: true, .. } => IdleReason::Failed,
        MemberTurnFacts { holds_task: true, .. } | MemberTurnFacts { has_children: true, .. } => {
            IdleReason::Waiting
        }
        MemberTurnFacts { blocked: 1.., free: 0, .. } => IdleReason::Blocked,
        _ => IdleReason::Available,
    }
}

/// Returns whether the lead is woken now. While other members work, it learns of idle members with its next turn, so
/// that a team that comes to rest costs its lead one turn, not one per member. A member that waits for its own
/// sub-agents resumes when they end; one that only holds a task does not resume automatically.
pub fn should_wake_lead(facts: MemberTurnFacts, others_at_work: bool, is_shutting_down: bool) -> bool {
    let idle = idle_reason(facts);
    let goes_on = idle == IdleReason::Waiting && facts.has_children;
    !is_shutting_down && !goes_on && (idle == IdleReason::Failed || !others_at_work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_reason_follows_member_facts() {
        let none = MemberTurnFacts::default();
        for (facts, expected) in [
            (none, IdleReason::Available),
            (MemberTurnFacts { free: 2, blocked: 1, ..none }, IdleReason::Available),
            (MemberTurnFacts { blocked: 1, ..none }, IdleReason::Blocked),
            (MemberTurnFacts { holds_task: true, blocked: 1, ..none }, IdleReason::Waiting),
            (MemberTurnFacts { has_children: true, ..none }, IdleReason::Waiting),
            (MemberTurnFacts { turn_failed: true, holds_task: true, ..none }, IdleReason::Failed),
        ] {
            assert_eq!(idle_reason(facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn only_last_idle_or_failed_member_wakes_lead() {
        let none = MemberTurnFacts::default();
        let failed = MemberTurnFacts { turn_failed: true, ..none };
        let holds = MemberTurnFacts { holds_task: true, ..none };
        for (facts, others_at_work, expected) in [
            (none, false, true),
            (none, true, false),
            (failed, true, true),
            (holds, false, true),
            (holds, true, false),
            (MemberTurnFacts { has_children: true, ..holds }, false, false),
            (MemberTurnFacts { has_children: true, ..none }, false, false),
        ] {
            assert_eq!(
                should_wake_lead(facts, others_at_work, false),
                expected,
                "{facts:?} {others_at_work}"
            );
        }
        assert!(!should_wake_lead(failed, false, true), "none while shutting down");
    }
}
