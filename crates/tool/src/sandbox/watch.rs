//! What all processes of one program use together. Limits of the kernel hold for each process alone, and the one for
//! their number not at all for root; so the supervisor counts.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use super::plan::{Ended, Plan};

/// Between two looks. Long enough to cost nothing, short enough that a bomb does not get far.
const EVERY_MS: i64 = 50;

pub struct Watch {
    memory_mb: u64,
    processes: u64,
}

impl Watch {
    pub fn new(plan: &Plan) -> Self {
        Self {
            memory_mb: plan.limits.memory_mb.unwrap_or(u64::MAX),
            processes: plan.limits.processes.unwrap_or(u64::MAX),
        }
    }

    /// The limit that is passed, if any.
    pub fn look(&self) -> Option<Ended> {
        let all = descendants();
        if all.len() as u64 > self.processes {
            return Some(Ended::OverProcesses(self.processes));
        }
        let used: u64 = all.iter().map(|pid| resident_kb(*pid)).sum();
        (used / 1024 > self.memory_mb).then_some(Ended::OverMemory(self.memory_mb))
    }
}

/// Waits for the program's end, for the daemon's, or for the next look. True if the daemon is gone.
pub fn wait(program: Option<&OwnedFd>) -> bool {
    let input = io::stdin();
    let mut ends = vec![PollFd::from_borrowed_fd(input.as_fd(), PollFlags::RDHUP)];
    ends.extend(program.map(|fd| PollFd::new(fd, PollFlags::IN)));
    let pause = Timespec { tv_sec: 0, tv_nsec: EVERY_MS * 1_000_000 };
    let gone = PollFlags::HUP | PollFlags::RDHUP | PollFlags::ERR;
    poll(&mut ends, Some(&pause)).is_ok() && ends[0].revents().intersects(gone)
}

/// Every process that comes from this one.
pub fn descendants() -> Vec<Pid> {
    // Not by our number: it means another process where /proc is another namespace's.
    let mut found = children("self");
    let mut at = 0;
    while at < found.len() {
        let more = children(&found[at].as_raw_nonzero().to_string());
        found.extend(more);
        at += 1;
    }
    found
}

/// Stops every descendant. True when all of them have stopped, or ended.
pub fn stop_all() -> bool {
    let running: Vec<Pid> = descendants().into_iter().filter(|pid| is_running(*pid)).collect();
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

/// Tasks of a user, this machine over: what a limit of processes starts from where it counts them all.
pub fn tasks_of(uid: u32) -> u64 {
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

fn children(pid: &str) -> Vec<Pid> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let listed =
        threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let pids =
        |text: String| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>();
    listed.flat_map(pids).filter_map(Pid::from_raw).collect()
}

/// Memory that is this process's alone, or shared without a file behind it.
fn resident_kb(pid: Pid) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
    let sizes = status.lines().filter(|line| line.starts_with("RssAnon:") || line.starts_with("RssShmem:"));
    sizes.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
}
