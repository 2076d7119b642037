//! The sandbox: a program that a tool starts runs confined or not at all.
//!
//! Confining oneself needs no `unsafe`; confining a child between fork and exec does. So the daemon starts its own
//! executable as a *supervisor* ([`supervise`]), which enters new namespaces ([`namespaces`]) and starts the executable
//! once more. That process confines itself ([`confine`]), reads back the result ([`facts`]), reports it and execs the
//! program. The supervisor outlives the program briefly and ends everything that it started.

mod confine;
mod facts;
mod landlock;
mod limits;
mod namespaces;
mod plan;
mod proc;
mod seccomp;
mod start;
mod supervise;
mod survey;
mod usage;
mod watch;

pub use plan::{InheritedSandbox, NamespaceMode, SandboxProfile};
pub use start::{
    ProgramEnd, RunningSandbox, SandboxGrants, SandboxLauncher, SandboxLauncherSettings, SandboxedProgram,
    StartedProgram, end_from_tail,
};

/// The stages of the helper, given as its last argument.
pub const HELPER_STAGES: [&str; 3] = [plan::SUPERVISE_STAGE, plan::INIT_STAGE, plan::ENTER_STAGE];

/// The first descriptor after the three standard ones.
const FIRST_INHERITED_FD: i32 = 3;

/// Runs a stage of the helper, in a process of its own that has no other threads. Returns the exit status.
pub fn run_helper(stage: &str) -> u8 {
    // Other open descriptors were inherited from the daemon's parent or belong to a worker, and the sandbox would not
    // restrict them.
    close_fds::set_fds_cloexec(FIRST_INHERITED_FD, &[]);
    match stage {
        plan::SUPERVISE_STAGE => supervise::supervise(),
        plan::INIT_STAGE => supervise::init(),
        plan::ENTER_STAGE => confine::enter(),
        _ => plan::EXIT_MISUSED,
    }
}
