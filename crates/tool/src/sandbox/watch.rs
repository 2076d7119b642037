//! Total resource use of a program's processes. Kernel limits apply to each process alone, and their number is not
//! limited for root, so the supervisor counts.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use polyclaw_tree::{MountRule, measure_tree};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use super::plan::{ReportedEnd, SandboxPlan, SandboxProfile};
use super::usage::{SharedMemory, unlinked_bytes};

/// Interval between checks: long enough to be cheap, short enough to stop a fork bomb early.
const COMMAND_CHECK_INTERVAL_MS: i64 = 50;
/// Longer for servers, which mostly wait and whose programs the operator chose.
const SERVER_CHECK_INTERVAL_MS: i64 = 500;

pub struct LimitWatch {
    memory_mb: u64,
    processes: u64,
    pause_ms: i64,
    shared: SharedMemory,
    disk: Option<DiskWatch>,
}

/// Disk usage of a run, in its workspace and temporary folder. Checked as often as is cheap.
struct DiskWatch {
    workspace: PathBuf,
    temporary: PathBuf,
    limit_mb: u64,
    /// At least the usage at the start, so that a program that may clean up is not killed for it.
    most: u64,
    next: Instant,
}

/// Minimum interval between disk checks; longer if a check takes long.
const MIN_DISK_CHECK_INTERVAL: Duration = Duration::from_millis(250);
const DISK_INTERVAL_PER_CHECK_TIME: u32 = 20;
const MIB: u64 = 1024 * 1024;

impl DiskWatch {
    fn new(plan: &SandboxPlan, limit_mb: u64) -> Self {
        let began = Instant::now();
        // Mounted over `/tmp` in a private mount namespace, otherwise under its own path.
        let temporary = if plan.own_temporary { Path::new("/tmp") } else { &plan.temporary };
        let mut disk = Self {
            workspace: plan.workspace.clone(),
            temporary: temporary.to_owned(),
            limit_mb,
            most: u64::MAX,
            next: began,
        };
        disk.most = disk.limit_bytes().max(disk.used(&[]));
        disk.next =
            Instant::now() + MIN_DISK_CHECK_INTERVAL.max(began.elapsed() * DISK_INTERVAL_PER_CHECK_TIME);
        disk
    }

    fn limit_bytes(&self) -> u64 {
        self.limit_mb.saturating_mul(MIB)
    }

    fn check_disk(&mut self, processes: &[Pid]) -> Option<ReportedEnd> {
        let began = Instant::now();
        if began < self.next {
            return None;
        }
        let used = self.used(processes);
        self.next =
            Instant::now() + MIN_DISK_CHECK_INTERVAL.max(began.elapsed() * DISK_INTERVAL_PER_CHECK_TIME);
        (used > self.most).then_some(ReportedEnd::OverDisk(self.limit_mb))
    }

    fn used(&self, processes: &[Pid]) -> u64 {
        let used = measure_tree(&self.workspace, self.most, MountRule::Enter);
        let used = used.saturating_add(measure_tree(&self.temporary, self.most, MountRule::Skip));
        used.saturating_add(unlinked_bytes(processes, &[&self.workspace, &self.temporary]))
    }
}

impl LimitWatch {
    pub fn new(plan: &SandboxPlan) -> Self {
        Self {
            memory_mb: plan.limits.memory_mb.unwrap_or(u64::MAX),
            processes: plan.limits.processes.unwrap_or(u64::MAX),
            shared: SharedMemory::default(),
            disk: plan.disk_mb.map(|limit_mb| DiskWatch::new(plan, limit_mb)),
            pause_ms: if plan.profile == SandboxProfile::Server {
                SERVER_CHECK_INTERVAL_MS
            } else {
                COMMAND_CHECK_INTERVAL_MS
            },
        }
    }

    /// Whether the workspace held more than its quota when this was made.
    pub fn is_over_quota(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.most > disk.limit_bytes())
    }

    /// Waits for the program's end, for the daemon's, or for the next look. True if the daemon is gone.
    pub fn wait_for_event(&self, program: Option<&OwnedFd>) -> bool {
        let input = io::stdin();
        let mut ends = vec![PollFd::from_borrowed_fd(input.as_fd(), PollFlags::RDHUP)];
        ends.extend(program.map(|fd| PollFd::new(fd, PollFlags::IN)));
        let pause = Timespec { tv_sec: 0, tv_nsec: self.pause_ms * 1_000_000 };
        let gone = PollFlags::HUP | PollFlags::RDHUP | PollFlags::ERR;
        poll(&mut ends, Some(&pause)).is_ok() && ends[0].revents().intersects(gone)
    }

    /// Returns the exceeded limit, if any.
    pub fn check_limits(&mut self) -> Option<ReportedEnd> {
        let all = descendant_pids();
        if all.len() as u64 > self.processes {
            return Some(ReportedEnd::OverProcesses(self.processes));
        }
        let own: u64 = all.iter().map(|pid| status_kb(*pid, "RssAnon:")).sum();
        let shared: u64 = all.iter().map(|pid| status_kb(*pid, "RssShmem:")).sum();
        let used = own.saturating_add(shared.max(self.shared.look_kb(&all)));
        if used / 1024 > self.memory_mb {
            return Some(ReportedEnd::OverMemory(self.memory_mb));
        }
        self.disk.as_mut().and_then(|disk| disk.check_disk(&all))
    }
}

/// Returns all descendants of this process.
pub fn descendant_pids() -> Vec<Pid> {
    // Not by process id: if `/proc` belongs to another namespace, the id means another process.
    let mut found = child_pids("self");
    let mut at = 0;
    while at < found.len() {
        let more = child_pids(&found[at].as_raw_nonzero().to_string());
        found.extend(more);
        at += 1;
    }
    found
}

/// Stops all descendants. Returns true once all of them have stopped or ended.
pub fn stop_all() -> bool {
    let running: Vec<Pid> = descendant_pids().into_iter().filter(|pid| is_running(*pid)).collect();
    for pid in &running {
        rustix::process::kill_process(*pid, rustix::process::Signal::STOP).ok();
    }
    running.is_empty()
}

fn is_running(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'T' | 't' | 'Z' | 'X' | 'D'))
}

/// Counts the tasks of a user on this machine. A process limit starts from this number if it counts all of them.
pub fn count_user_tasks(uid: u32) -> u64 {
    let tasks = |entry: std::fs::DirEntry| {
        let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
        let value =
            |key: &str| status.lines().find_map(|line| line.strip_prefix(key))?.split_whitespace().next();
        if value("Uid:")?.parse::<u32>().ok()? != uid {
            return None;
        }
        value("Threads:")?.parse::<u64>().ok()
    };
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(tasks).sum()
}

fn child_pids(pid: &str) -> Vec<Pid> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let listed =
        threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let pids =
        |text: String| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>();
    listed.flat_map(pids).filter_map(Pid::from_raw).collect()
}

/// Returns a number from a process's status.
fn status_kb(pid: Pid, key: &str) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(key));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
