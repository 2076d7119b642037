//! `polyclaw guard`: runs a program that must not outlive who asked for it. Not for people.

use std::ffi::OsString;

use rustix::process::{Signal, kill_current_process_group, set_parent_process_death_signal};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::client_runtime;

/// What is written before a program that is to be guarded.
pub const GUARD: [&str; 3] = ["/proc/self/exe", "guard", "--"];

/// Run a program, and kill it with all it started when the process that asked for it is gone.
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Args {
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    program: Vec<OsString>,
}

/// The guard is the leader of the group; what it runs is in the group. The kernel tells it when its parent dies,
/// however that happens, and then the group is killed as a whole, the guard with it.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let parent = rustix::process::getppid();
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if rustix::process::getppid() != parent {
        // It died before the kernel was asked.
        return Ok(());
    }
    let code = client_runtime()?.block_on(watch(args))?;
    std::process::exit(code);
}

async fn watch(args: &Args) -> anyhow::Result<i32> {
    let mut told = signal(SignalKind::terminate())?;
    let mut child = tokio::process::Command::new(&args.program[0])
        .args(&args.program[1..])
        .spawn()
        .map_err(|error| anyhow::anyhow!("{}: {error}", args.program[0].to_string_lossy()))?;
    tokio::select! {
        status = child.wait() => Ok(status?.code().unwrap_or(1)),
        _ = told.recv() => {
            kill_current_process_group(Signal::KILL)?;
            Ok(1)
        }
    }
}
