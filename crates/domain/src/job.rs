//! Turn jobs: one queued turn of one session, with its lane, priority and state.

use serde::{Deserialize, Serialize};

/// A concurrency class of turn jobs. A turn that waits for a child never occupies a slot that the child needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobLane {
    Main,
    Subagent,
    Teammate,
    Cron,
    InternalAnnounce,
}

impl JobLane {
    pub const ALL: [Self; 5] =
        [Self::Main, Self::Subagent, Self::Teammate, Self::Cron, Self::InternalAnnounce];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Subagent => "subagent",
            Self::Teammate => "teammate",
            Self::Cron => "cron",
            Self::InternalAnnounce => "internal_announce",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| lane.as_str() == text)
    }

    pub fn default_slots(self, cores: usize) -> usize {
        match self {
            Self::Main => cores.clamp(8, 16),
            Self::Subagent => 8,
            Self::Teammate => 10,
            Self::Cron => 2,
            Self::InternalAnnounce => 4,
        }
    }
}

/// Priority inside a lane: direct messages precede group messages, webhooks and background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobPriority {
    Direct = 0,
    Group = 1,
    Webhook = 2,
    Background = 3,
}

impl JobPriority {
    pub const ALL: [Self; 4] = [Self::Direct, Self::Group, Self::Webhook, Self::Background];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Queued,
    Running,
    Done,
    Failed,
    Cancelled,
    /// Ended at a boundary for a newer message; its task continues in a later turn.
    Steered,
}

impl JobState {
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Running, Self::Done, Self::Failed, Self::Cancelled, Self::Steered];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Steered => "steered",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Returns whether no further transition is possible. A steered turn has ended, but its task is answered by a later
    /// turn.
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}
