//! A process group that is killed as a whole: at the end of a call, on a timeout, or on drop.

use rustix::process::{Pid, Signal, kill_process_group};

pub struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// The group of a child that was started as a group leader.
    pub fn led_by(leader: Option<u32>) -> Self {
        Self(leader.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// Kills only once, because the id may be reused later.
    pub fn kill(&mut self) {
        if let Some(group) = self.0.take() {
            // Fails only if no process is left.
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
