//! `polyclaw guard`: runs a program that must not outlive who asked for it. Not for people.

use std::ffi::OsString;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, getpid, kill_process, set_child_subreaper, set_parent_process_death_signal,
};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::client_runtime;

/// How often those below are looked for at the most, and the pause between two looks.
const MAX_KILL_ROUNDS: usize = 400;
const KILL_ROUND_INTERVAL: Duration = Duration::from_millis(5);

/// What is written before a program that is to be guarded.
pub const GUARD_COMMAND: [&str; 3] = ["/proc/self/exe", "guard", "--"];

/// Run a program, and kill it with all it started when the process that asked for it is gone.
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Args {
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    program: Vec<OsString>,
}

/// What the program starts stays below the guard, in whatever group or session: orphans become the guard's children. The
/// kernel tells it when its parent dies, however that happens. When the program has ended or the guard is told, all that
/// is below it is killed.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let parent = rustix::process::getppid();
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if rustix::process::getppid() != parent {
        // It died before the kernel was asked.
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

/// Again and again, for one that is just being started is not yet seen.
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

/// Whoever has ended and was not asked after is no more than a line in the table of processes.
fn is_alive(process: Pid) -> bool {
    let line = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_pid())).unwrap_or_default();
    line.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}
