//! `polyclaw guard`: runs a program that must not outlive its parent. Internal.

use std::ffi::OsString;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, getpid, kill_process, set_child_subreaper, set_parent_process_death_signal,
};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::client_runtime;

/// Maximum number of kill rounds, and the pause between two rounds.
const MAX_KILL_ROUNDS: usize = 400;
const KILL_ROUND_INTERVAL: Duration = Duration::from_millis(5);

/// Command line prefix that runs a program under the guard.
pub const GUARD_COMMAND: [&str; 3] = ["/proc/self/exe", "guard", "--"];

/// Run a program. Kill it with all its descendants when the parent process dies.
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Args {
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    program: Vec<OsString>,
}

/// Runs the program, then kills all its descendants.
///
/// Descendants stay below the guard whatever their process group or session, because orphans become the guard's
/// children. The kernel signals the guard when its parent dies, however that happens. When the program ends or the
/// signal arrives, everything below the guard is killed.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let parent = rustix::process::getppid();
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if rustix::process::getppid() != parent {
        // The parent died before the signal was requested.
        return Ok(());
    }
    set_child_subreaper(Some(getpid()))?;
    let code = client_runtime()?.block_on(run_guarded(args))?;
    kill_descendants();
    std::process::exit(code);
}

async fn run_guarded(args: &Args) -> anyhow::Result<i32> {
    let mut notice = signal(SignalKind::terminate())?;
    let mut child = tokio::process::Command::new(&args.program[0])
        .args(&args.program[1..])
        .spawn()
        .map_err(|error| anyhow::anyhow!("{}: {error}", args.program[0].to_string_lossy()))?;
    tokio::select! {
        status = child.wait() => Ok(status?.code().unwrap_or(1)),
        _ = notice.recv() => Ok(1),
    }
}

/// Kills all descendants. Repeats, because a process that is just being started is not visible yet.
fn kill_descendants() {
    for _ in 0..MAX_KILL_ROUNDS {
        let below = live_descendants(getpid());
        if below.is_empty() {
            return;
        }
        for process in below {
            let _ = kill_process(process, Signal::KILL);
        }
        std::thread::sleep(KILL_ROUND_INTERVAL);
    }
}

fn live_descendants(process: Pid) -> Vec<Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", process.as_raw_pid()));
    let lists = tasks.into_iter().flatten().flatten().map(|task| task.path().join("children"));
    let children: String = lists.filter_map(|list| std::fs::read_to_string(list).ok()).collect();
    let children = children.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?));
    children
        .filter(|child| is_alive(*child))
        .flat_map(|child| [vec![child], live_descendants(child)].concat())
        .collect()
}

/// Returns whether the process runs. A zombie has ended and only waits to be reaped.
fn is_alive(process: Pid) -> bool {
    let line = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_pid())).unwrap_or_default();
    line.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}
