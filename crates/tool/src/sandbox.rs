//! The sandbox: a program that a tool starts runs confined, or it does not run.
//!
//! Confining oneself needs no `unsafe`, confining a child between fork and exec does. So the daemon starts this very
//! program again, as a *supervisor* ([`supervise`]), which builds walls around itself ([`walls`]) and starts it once
//! more; that one confines itself ([`confine`]), reads back what holds ([`facts`]), says so, and becomes the program.
//! The supervisor outlives it by a moment and takes everything it has started with it.

mod calls;
mod confine;
mod facts;
mod files;
mod limits;
mod plan;
mod proc;
mod start;
mod supervise;
mod survey;
mod usage;
mod walls;
mod watch;

pub use plan::{Inherited, Profile, Way};
pub use start::{End, Grants, Program, Running, Sandboxes, Settings, Started, last_words};

/// What the helper is told to be by its last argument.
pub const STAGES: [&str; 3] = [plan::SUPERVISE, plan::INIT, plan::ENTER];

/// Behind the three that every program has.
const FIRST_FOREIGN: i32 = 3;

/// The helper's whole life, in a process of its own that has started no thread. Returns its exit status.
pub fn helper(stage: &str) -> u8 {
    // Whatever else is open was left by whoever started the daemon, or is a line of a worker's: no wall stands before those.
    close_fds::set_fds_cloexec(FIRST_FOREIGN, &[]);
    match stage {
        plan::SUPERVISE => supervise::supervise(),
        plan::INIT => supervise::init(),
        plan::ENTER => confine::enter(),
        _ => plan::MISUSED,
    }
}
