//! Instances of a control plane: names, the status that follows from process facts, and restart decisions after a
//! crash. The crate `control` collects the facts; this module interprets them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backoff::BackoffPolicy;
use crate::time::Millis;

/// Ports assigned to instances that request none.
pub const ASSIGNABLE_PORTS: std::ops::RangeInclusive<u16> = 18801..=18999;
/// The lowest port an instance may request: lower ones need special rights.
const MIN_PORT: u16 = 1024;
/// Crashes within [`BREAKER_WINDOW_MS`] after which an instance is not restarted any more.
pub const BREAKER_CRASHES: usize = 5;
pub const BREAKER_WINDOW_MS: i64 = 10 * 60_000;
const RESTART_BACKOFF: BackoffPolicy = BackoffPolicy::new(Duration::from_secs(1), Duration::from_secs(30));

/// The name of an instance: `^[a-zA-Z0-9][a-zA-Z0-9-]{0,63}$`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct InstanceName(String);

#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("a name must have 1 to 64 letters, digits and hyphens, and must not start with a hyphen")]
pub struct InvalidInstanceName;

impl InstanceName {
    pub fn parse(text: &str) -> Result<Self, InvalidInstanceName> {
        let fits = (1..=64).contains(&text.len()) && !text.starts_with('-');
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if fits && plain { Ok(Self(text.to_owned())) } else { Err(InvalidInstanceName) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for InstanceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns whether an instance may listen on this port number.
pub fn is_allowed_port(port: u16) -> bool {
    port >= MIN_PORT
}

/// The state that was last requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DesiredState {
    Running,
    Stopped,
}

impl DesiredState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Running, Self::Stopped].into_iter().find(|one| one.as_str() == text)
    }
}

/// When an instance is restarted automatically.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    Never,
    /// After a crash, but not after a clean exit.
    #[default]
    OnFailure,
    Always,
}

impl RestartPolicy {
    pub const ALL: [Self; 3] = [Self::Never, Self::OnFailure, Self::Always];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::OnFailure => "on-failure",
            Self::Always => "always",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == text)
    }
}

/// The current status of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceStatus {
    Running,
    /// The process runs but does not answer.
    Unresponsive,
    /// A start was requested; the process does not run yet.
    Starting,
    /// A restart was requested: the process ended and does not run again yet.
    Restarting,
    Stopped,
    /// The instance should run but does not.
    Crashed,
    /// Its pid belongs to a foreign process, which is never signalled.
    StalePid,
    /// A process exists, but the system does not tell whose it is.
    Unknown,
    /// It crashed too often; it is not restarted until somebody starts it.
    Error,
    Archived,
}

impl InstanceStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Unresponsive => "unresponsive",
            Self::Starting => "starting",
            Self::Restarting => "restarting",
            Self::Stopped => "stopped",
            Self::Crashed => "crashed",
            Self::StalePid => "stale-pid",
            Self::Unknown => "unknown",
            Self::Error => "error",
            Self::Archived => "archived",
        }
    }
}

/// What the process table tells about a pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// No process, or a zombie.
    Gone,
    /// A process that works on the instance's home.
    Ours,
    Foreign,
    /// A process whose environment we cannot read.
    Hidden,
}

/// Facts about an instance besides its process.
#[derive(Clone, Copy, Debug)]
pub struct InstanceFacts {
    pub archived: bool,
    pub desired: DesiredState,
    /// The circuit breaker is open.
    pub broken: bool,
    /// A pid file exists: a daemon that exits cleanly removes its own.
    pub pid_left: bool,
    /// A requested restart is not complete.
    pub restarting: bool,
}

pub fn derive_status(known: InstanceFacts, process: ProcessState) -> InstanceStatus {
    match process {
        _ if known.archived => InstanceStatus::Archived,
        ProcessState::Ours => InstanceStatus::Running,
        ProcessState::Foreign => InstanceStatus::StalePid,
        ProcessState::Hidden => InstanceStatus::Unknown,
        ProcessState::Gone if known.restarting => InstanceStatus::Restarting,
        ProcessState::Gone if known.broken => InstanceStatus::Error,
        ProcessState::Gone if known.desired == DesiredState::Running => InstanceStatus::Crashed,
        ProcessState::Gone if known.pid_left => InstanceStatus::Crashed,
        ProcessState::Gone => InstanceStatus::Stopped,
    }
}

/// What to do with an instance that ended although it should run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartDecision {
    /// Start it, not before this time.
    StartAt(Millis),
    /// It exited cleanly and counts as stopped.
    StayStopped,
    /// It stays down and counts as crashed.
    StayCrashed,
    /// It crashed too often: open the breaker.
    OpenBreaker,
}

/// Decides whether to restart an instance. `crashes` are the recent crash times, newest last, including this end unless
/// it was a clean exit.
pub fn decide_restart(
    restart: RestartPolicy,
    in_good_order: bool,
    crashes: &[Millis],
    now: Millis,
) -> RestartDecision {
    let late: Vec<Millis> = crashes.iter().copied().filter(|at| now.since(*at) < BREAKER_WINDOW_MS).collect();
    match restart {
        RestartPolicy::Never if in_good_order => RestartDecision::StayStopped,
        RestartPolicy::OnFailure if in_good_order => RestartDecision::StayStopped,
        RestartPolicy::Never => RestartDecision::StayCrashed,
        _ if late.len() >= BREAKER_CRASHES => RestartDecision::OpenBreaker,
        _ => RestartDecision::StartAt(
            late.last().copied().unwrap_or(now).plus_duration(restart_delay(late.len())),
        ),
    }
}

/// Returns the delay before a restart: none the first time, then growing. Without jitter: people see the time.
fn restart_delay(crashes: usize) -> Duration {
    match u32::try_from(crashes).unwrap_or(u32::MAX) {
        0 | 1 => Duration::ZERO,
        n => RESTART_BACKOFF.delay_without_jitter(n - 1),
    }
}

/// What a token permits. Each level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenAccess {
    Read,
    Operate,
    Admin,
}

impl TokenAccess {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Read, Self::Operate, Self::Admin].into_iter().find(|one| one.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_words_are_valid_names() {
        for good in ["a", "A-1", "0", &"x".repeat(64)] {
            assert!(InstanceName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-bad", "has spaces", "a_b", "a/b", "..", "ä", &"x".repeat(65)] {
            assert_eq!(InstanceName::parse(bad), Err(InvalidInstanceName), "{bad}");
        }
    }

    #[test]
    fn instance_status_follows_process_state() {
        let known = InstanceFacts {
            archived: false,
            desired: DesiredState::Running,
            broken: false,
            pid_left: true,
            restarting: false,
        };
        let stopped = InstanceFacts { desired: DesiredState::Stopped, pid_left: false, ..known };
        for (known, process, expected) in [
            (known, ProcessState::Ours, InstanceStatus::Running),
            (stopped, ProcessState::Ours, InstanceStatus::Running),
            (known, ProcessState::Foreign, InstanceStatus::StalePid),
            (known, ProcessState::Hidden, InstanceStatus::Unknown),
            (known, ProcessState::Gone, InstanceStatus::Crashed),
            (InstanceFacts { pid_left: false, ..known }, ProcessState::Gone, InstanceStatus::Crashed),
            (InstanceFacts { pid_left: true, ..stopped }, ProcessState::Gone, InstanceStatus::Crashed),
            (stopped, ProcessState::Gone, InstanceStatus::Stopped),
            (InstanceFacts { broken: true, ..known }, ProcessState::Gone, InstanceStatus::Error),
            (InstanceFacts { broken: true, ..known }, ProcessState::Ours, InstanceStatus::Running),
            (InstanceFacts { archived: true, ..known }, ProcessState::Ours, InstanceStatus::Archived),
        ] {
            assert_eq!(derive_status(known, process), expected, "{known:?} {process:?}");
        }
    }

    #[test]
    fn restart_policy_decides_after_process_end() {
        let (now, once) = (Millis(1_000_000), [Millis(1_000_000)]);
        for (restart, in_good_order, expected) in [
            (RestartPolicy::Never, true, RestartDecision::StayStopped),
            (RestartPolicy::Never, false, RestartDecision::StayCrashed),
            (RestartPolicy::OnFailure, true, RestartDecision::StayStopped),
            (RestartPolicy::OnFailure, false, RestartDecision::StartAt(now)),
            (RestartPolicy::Always, true, RestartDecision::StartAt(now)),
            (RestartPolicy::Always, false, RestartDecision::StartAt(now)),
        ] {
            assert_eq!(
                decide_restart(restart, in_good_order, &once, now),
                expected,
                "{restart:?} {in_good_order}"
            );
        }
    }

    #[test]
    fn restarts_back_off_until_breaker_opens() {
        let crashes: Vec<Millis> = (1..=5).map(|n| Millis(n * 10_000)).collect();
        let pauses: Vec<RestartDecision> = (1..=5)
            .map(|n| decide_restart(RestartPolicy::OnFailure, false, &crashes[..n], crashes[n - 1]))
            .collect();
        let at = |millis: i64| RestartDecision::StartAt(Millis(millis));
        assert_eq!(pauses, [at(10_000), at(21_000), at(32_000), at(44_000), RestartDecision::OpenBreaker]);
        let later = crashes[4].plus(BREAKER_WINDOW_MS);
        assert_eq!(
            decide_restart(RestartPolicy::OnFailure, false, &crashes, later),
            at(later.0),
            "old crashes are forgotten"
        );
    }
}
