//! The sandbox: a program that a tool starts runs confined, or it does not run.
//!
//! Confining oneself needs no `unsafe`, confining a child between fork and exec does. So the daemon starts this very
//! program again, as a *supervisor* ([`supervise`]), which builds walls around itself ([`walls`]) and starts it once
//! more; that one confines itself ([`confine`]), reads back what holds ([`facts`]), says so, and becomes the program.
//! The supervisor outlives it by a moment and takes everything it has started with it.

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

/// What the helper is told to be by its last argument.
pub const HELPER_STAGES: [&str; 3] = [plan::SUPERVISE_STAGE, plan::INIT_STAGE, plan::ENTER_STAGE];

/// Behind the three that every program has.
const FIRST_INHERITED_FD: i32 = 3;

/// The helper's whole life, in a process of its own that has started no thread. Returns its exit status.
pub fn run_helper(stage: &str) -> u8 {
    // Whatever else is open was left by whoever started the daemon, or is a line of a worker's: no wall stands before those.
    close_fds::set_fds_cloexec(FIRST_INHERITED_FD, &[]);
    match stage {
        plan::SUPERVISE_STAGE => supervise::supervise(),
        plan::INIT_STAGE => supervise::init(),
        plan::ENTER_STAGE => confine::enter(),
        _ => plan::EXIT_MISUSED,
    }
}
