//! The supervisor: starts the program, waits for it, and leaves nothing of it behind.
//!
//! Two guarantees, each enough alone. In a process namespace its first process is ours, and when that ends the kernel
//! ends all others. Without one the supervisor is the subreaper: whoever leaves its parent, by `setsid` or a double
//! fork, becomes its child, and it goes only when it has none. It also ends when the daemon does, however that ends: the
//! socket between them closes.

use std::io;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use polyclaw_domain::agent::SandboxMode;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::plan::{self, ENTER, Ended, INIT, Line, MISUSED, Plan, Profile, REFUSED, Way};
use super::walls;
use super::watch::{self, Watch};

/// Exit status of bubblewrap when it could not do what it was asked; no stage of ours has it.
const BUBBLEWRAP_FAILED: i32 = 1;

/// From the end of a server's input to the end of the server.
const SERVER_GRACE: Duration = Duration::from_secs(2);

/// First stage: reads the plan and builds the walls.
pub fn supervise() -> u8 {
    let Some(plan) = plan::hear::<Plan>(io::stdin()) else { return MISUSED };
    let begun = match &plan.way {
        Way::Own => walls::leave(&plan).and_then(|()| next(&plan, &plan.helper, INIT)),
        Way::Bubblewrap(path) => walls::bubblewrap(&plan, path).and_then(|wrap| next(&plan, &wrap, INIT)),
        Way::Bare => return bare(&plan),
    };
    // The first process of the namespace ends with us, and all others with that.
    die_with_parent();
    match begun.and_then(|mut child| child.wait()) {
        Ok(status) if status.code() == Some(BUBBLEWRAP_FAILED) => {
            no_walls("bubblewrap can not make namespaces")
        }
        // It ended after all others in its namespace had.
        Ok(status) => status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(REFUSED),
        Err(error) if walls::is_for_good(&error) => no_walls(&format!("namespaces can not be made: {error}")),
        Err(error) => refuse(&format!("namespaces could not be made: {error}")),
    }
}

/// Without walls we must outlive the daemon by a moment: who else would end what is left? So no signal at its death;
/// the closed socket tells.
fn bare(plan: &Plan) -> u8 {
    // For root the kernel keeps no limit of processes, and what is counted from outside can be outrun.
    if plan.mode != SandboxMode::Off && !plan.walled && rustix::process::geteuid().is_root() {
        return refuse("root can not be confined without namespaces: run Polyclaw as an ordinary user");
    }
    attend(plan)
}

fn no_walls(why: &str) -> u8 {
    plan::say(&Line::NoWalls(why.to_owned()));
    REFUSED
}

/// Second stage, inside namespaces: their first process.
pub fn init() -> u8 {
    let Some(mut plan) = handed_on() else { return MISUSED };
    die_with_parent();
    match walls::furnish(&mut plan) {
        Ok(()) => attend(&plan),
        Err(error) if walls::is_for_good(&error) => no_walls(&format!("mounts can not be arranged: {error}")),
        Err(error) => refuse(&format!("mounts could not be arranged: {error}")),
    }
}

/// The plan comes where errors are to go; they go where output goes from then on.
pub fn handed_on() -> Option<Plan> {
    let plan = plan::hear(rustix::io::dup(io::stderr().as_fd()).map(std::fs::File::from).ok()?);
    rustix::stdio::dup2_stderr(io::stdout().as_fd()).ok()?;
    plan
}

fn next(plan: &Plan, helper: &[String], stage: &str) -> io::Result<Child> {
    let (reader, writer) = io::pipe()?;
    let (program, arguments) = helper.split_first().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(arguments).arg(stage).env_clear().envs(memory_settings()).stderr(reader);
    command.stdin(Stdio::inherit()).stdout(Stdio::inherit());
    let child = command.spawn()?;
    plan::pass(plan, writer)?;
    Ok(child)
}

/// Our own allocator must not reserve more than a program may have.
pub fn memory_settings() -> [(&'static str, &'static str); 1] {
    [("MIMALLOC_ARENA_EAGER_COMMIT", "0")]
}

/// Starts the last stage and stays until it has ended, the daemon is gone, or a limit is passed.
fn attend(plan: &Plan) -> u8 {
    rustix::process::set_child_subreaper(Pid::from_raw(1)).ok();
    let child = match next(plan, &plan.helper, ENTER) {
        Ok(child) => child,
        Err(error) => return refuse(&format!("it could not be started: {error}")),
    };
    let Some(program) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return REFUSED };
    let ended = follow(program, plan);
    if plan.way == Way::Bare {
        kill_all();
    }
    // In a namespace our own end is everybody's, at once: no loop of ours could be as fast as a bomb.
    ended.map_or(REFUSED, |ended| {
        plan::say(&Line::Ended(ended));
        0
    })
}

/// `None` if the daemon is gone.
fn follow(program: Pid, plan: &Plan) -> Option<Ended> {
    let mut watch = Watch::new(plan);
    let handle = rustix::process::pidfd_open(program, rustix::process::PidfdFlags::empty()).ok();
    loop {
        if let Some(ended) = reap(program) {
            return Some(ended);
        }
        if watch.wait(handle.as_ref()) {
            return closing(program, plan);
        }
        if let Some(over) = watch.look() {
            return Some(over);
        }
    }
}

/// The line to the daemon is closed. To a server that is the end of its input: it gets a moment to end by itself.
fn closing(program: Pid, plan: &Plan) -> Option<Ended> {
    if plan.profile != Profile::Server {
        return None;
    }
    let limit = Instant::now() + SERVER_GRACE;
    while Instant::now() < limit {
        if let Some(ended) = reap(program) {
            return Some(ended);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

/// Collects whoever has ended, and says so if it was the program.
fn reap(program: Pid) -> Option<Ended> {
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == program {
            return Some(how(status));
        }
    }
    None
}

fn how(status: WaitStatus) -> Ended {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ended::Exited(code),
        (None, signal) => Ended::Signalled(signal.unwrap_or(0)),
    }
}

/// Until nothing is left. All are stopped first: what is killed one by one forks faster than it can be found, what is
/// stopped does not fork, and keeps its place among those that may be.
fn kill_all() {
    while !watch::stop_all() {}
    loop {
        for pid in watch::descendants() {
            rustix::process::kill_process(pid, Signal::KILL).ok();
        }
        // All that have ended by now, before the next look: one at a time would never be done with many.
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

fn die_with_parent() {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).ok();
}

pub fn refuse(why: &str) -> u8 {
    plan::say(&Line::Refused(why.to_owned()));
    REFUSED
}
