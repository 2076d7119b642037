//! The supervisor: starts the program, waits for it and leaves nothing of it behind.
//!
//! Two guarantees, each sufficient alone. In a process namespace the first process is ours, and when it ends the kernel
//! ends all others. Without one the supervisor is the subreaper: a process that leaves its parent, by `setsid` or a
//! double fork, becomes its child, and it exits only when it has none. It also ends with the daemon, however that ends,
//! because the socket between them closes.

use std::io;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use polyclaw_domain::agent::SandboxMode;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::namespaces;
use super::plan::{
    self, ENTER_STAGE, EXIT_MISUSED, EXIT_REFUSED, HelperMessage, INIT_STAGE, NamespaceMode, ReportedEnd,
    SandboxPlan, SandboxProfile,
};
use super::watch::{self, LimitWatch};

/// Bubblewrap's exit status on failure. No stage of ours uses it.
const BUBBLEWRAP_FAILED: i32 = 1;

/// Time between the end of a server's input and its kill.
const SERVER_GRACE: Duration = Duration::from_secs(2);

/// First stage: reads the plan and creates the namespaces.
pub fn supervise() -> u8 {
    let Some(plan) = plan::read_json_line::<SandboxPlan>(io::stdin()) else { return EXIT_MISUSED };
    let result =
        match &plan.namespace_mode {
            NamespaceMode::Own => namespaces::enter_namespaces(&plan)
                .and_then(|()| spawn_stage(&plan, &plan.helper, INIT_STAGE)),
            NamespaceMode::Bubblewrap(path) => namespaces::bubblewrap_command(&plan, path)
                .and_then(|wrap| spawn_stage(&plan, &wrap, INIT_STAGE)),
            NamespaceMode::Bare => return run_without_namespaces(&plan),
        };
    // The first process of the namespace ends with us, and then all others in it.
    die_with_parent();
    match result.and_then(|mut child| child.wait()) {
        Ok(status) if status.code() == Some(BUBBLEWRAP_FAILED) => {
            report_no_namespaces("bubblewrap cannot create namespaces")
        }
        // It ended after all others in its namespace.
        Ok(status) => status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(EXIT_REFUSED),
        Err(error) if namespaces::is_permanent(&error) => {
            report_no_namespaces(&format!("cannot create namespaces: {error}"))
        }
        Err(error) => report_refusal(&format!("creating namespaces failed: {error}")),
    }
}

/// Runs without namespaces. The supervisor must outlive the daemon briefly to end what is left, so it gets no signal at
/// the daemon's death; the closed socket tells it.
fn run_without_namespaces(plan: &SandboxPlan) -> u8 {
    // The kernel does not limit root's processes, and counting from outside is too slow for a fork bomb.
    if plan.mode != SandboxMode::Off && !plan.already_namespaced && rustix::process::geteuid().is_root() {
        return report_refusal(
            "root cannot be sandboxed without namespaces: run Polyclaw as an ordinary user",
        );
    }
    supervise_program(plan)
}

fn report_no_namespaces(why: &str) -> u8 {
    plan::send_line(&HelperMessage::NoNamespaces(why.to_owned()));
    EXIT_REFUSED
}

/// Second stage, the first process inside the namespaces.
pub fn init() -> u8 {
    let Some(mut plan) = receive_plan() else { return EXIT_MISUSED };
    die_with_parent();
    match namespaces::set_up_mounts(&mut plan) {
        Ok(()) => supervise_program(&plan),
        Err(error) if namespaces::is_permanent(&error) => {
            report_no_namespaces(&format!("cannot set up mounts: {error}"))
        }
        Err(error) => report_refusal(&format!("setting up mounts failed: {error}")),
    }
}

/// Receives the plan over standard error, then redirects standard error to standard output.
pub fn receive_plan() -> Option<SandboxPlan> {
    let plan = plan::read_json_line(rustix::io::dup(io::stderr().as_fd()).map(std::fs::File::from).ok()?);
    rustix::stdio::dup2_stderr(io::stdout().as_fd()).ok()?;
    plan
}

fn spawn_stage(plan: &SandboxPlan, helper: &[String], stage: &str) -> io::Result<Child> {
    let (reader, writer) = io::pipe()?;
    let (program, arguments) = helper.split_first().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(arguments).arg(stage).env_clear().envs(allocator_settings()).stderr(reader);
    command.stdin(Stdio::inherit()).stdout(Stdio::inherit());
    let child = command.spawn()?;
    plan::write_plan(plan, writer)?;
    Ok(child)
}

/// Keeps our allocator from reserving more memory than a program may have.
pub fn allocator_settings() -> [(&'static str, &'static str); 1] {
    [("MIMALLOC_ARENA_EAGER_COMMIT", "0")]
}

/// Starts the last stage and waits until it ends, the daemon is gone or a limit is exceeded.
fn supervise_program(plan: &SandboxPlan) -> u8 {
    rustix::process::set_child_subreaper(Pid::from_raw(1)).ok();
    // Measured before the program starts: many short ones, each over before the next measure, would add up without bound.
    let watch = LimitWatch::new(plan);
    let removal_only = plan.mode != SandboxMode::Off && watch.is_over_quota();
    let plan = &SandboxPlan { removal_only, ..plan.clone() };
    let child = match spawn_stage(plan, &plan.helper, ENTER_STAGE) {
        Ok(child) => child,
        Err(error) => return report_refusal(&format!("cannot start it: {error}")),
    };
    let Some(program) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return EXIT_REFUSED };
    let ended = watch_program(program, plan, watch);
    if plan.namespace_mode == NamespaceMode::Bare {
        kill_all();
    }
    // In a namespace our exit ends all processes at the same time, which no loop could do against a fork bomb.
    ended.map_or(EXIT_REFUSED, |ended| {
        plan::send_line(&HelperMessage::Ended(ended));
        0
    })
}

/// `None` if the daemon is gone.
fn watch_program(program: Pid, plan: &SandboxPlan, mut watch: LimitWatch) -> Option<ReportedEnd> {
    let handle = rustix::process::pidfd_open(program, rustix::process::PidfdFlags::empty()).ok();
    loop {
        if let Some(ended) = reap_children(program) {
            return Some(ended);
        }
        if watch.wait_for_event(handle.as_ref()) {
            return wait_server_exit(program, plan);
        }
        if let Some(over) = watch.check_limits() {
            return Some(over);
        }
    }
}

/// Called when the connection to the daemon is closed. For a server that is the end of its input, so it gets a moment
/// to exit.
fn wait_server_exit(program: Pid, plan: &SandboxPlan) -> Option<ReportedEnd> {
    if plan.profile != SandboxProfile::Server {
        return None;
    }
    let limit = Instant::now() + SERVER_GRACE;
    while Instant::now() < limit {
        if let Some(ended) = reap_children(program) {
            return Some(ended);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

/// Reaps ended children. Returns how the program ended, if it did.
fn reap_children(program: Pid) -> Option<ReportedEnd> {
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == program {
            return Some(end_from_status(status));
        }
    }
    None
}

fn end_from_status(status: WaitStatus) -> ReportedEnd {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ReportedEnd::Exited(code),
        (None, signal) => ReportedEnd::Signalled(signal.unwrap_or(0)),
    }
}

/// Kills all descendants until none is left. All are stopped first: a fork bomb would outrun killing one by one, while
/// stopped processes cannot fork and still count towards the limit.
fn kill_all() {
    while !watch::stop_all() {}
    loop {
        for pid in watch::descendant_pids() {
            rustix::process::kill_process(pid, Signal::KILL).ok();
        }
        // Reaps all ended children before the next scan; one per scan would be too slow.
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

pub fn report_refusal(why: &str) -> u8 {
    plan::send_line(&HelperMessage::Refused(why.to_owned()));
    EXIT_REFUSED
}
