//! A process group that is killed as a whole: when the call ends, runs out of time, or is dropped.

use rustix::process::{Pid, Signal, kill_process_group};

pub struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// The group of a child that was started as the leader of its own.
    pub fn led_by(leader: Option<u32>) -> Self {
        Self(leader.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// Kills once: later the id may belong to someone else.
    pub fn kill(&mut self) {
        if let Some(group) = self.0.take() {
            // Fails only if nothing is left to kill.
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
