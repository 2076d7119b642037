//! Background loops, each a named kind with a policy. The list is also the health page.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::core::Engine;
use crate::error::Result;
use crate::{delivery, maintenance, memory, reception, schedule, team, worker};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Claims turn jobs and drives them.
    Work,
    /// Sends what is in the outbox.
    Deliver,
    /// Renews leases and takes over those that ended.
    Keep,
    /// Hears other nodes.
    Listen,
    /// Forgets what nobody needs any more.
    Sweep,
    /// Makes vectors of memories.
    Embed,
    /// Begins errands when they are due.
    Schedule,
    /// Receives by every channel.
    Receive,
    /// Goes on with messages that several agents answer.
    Round,
    /// Removes sessions nobody uses any more, or says which.
    Maintain,
    /// Looks after teams: leases of tasks, what ledgers have to tell, who is idle, who is to stop.
    Team,
}

#[derive(Clone, Debug, Serialize)]
pub struct TaskState {
    pub task: Task,
    pub state: &'static str,
    pub restarts: u32,
}

#[derive(Default)]
pub(crate) struct TaskBoard(Mutex<HashMap<Task, TaskState>>);

impl TaskBoard {
    fn set(&self, task: Task, state: &'static str, restarted: bool) {
        let mut board = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = board.entry(task).or_insert(TaskState { task, state, restarts: 0 });
        entry.state = state;
        entry.restarts += u32::from(restarted);
    }
}

impl Task {
    pub const ALL: [Self; 11] = [
        Self::Work,
        Self::Deliver,
        Self::Keep,
        Self::Listen,
        Self::Sweep,
        Self::Embed,
        Self::Schedule,
        Self::Receive,
        Self::Round,
        Self::Maintain,
        Self::Team,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Deliver => "deliver",
            Self::Keep => "keep",
            Self::Listen => "listen",
            Self::Sweep => "sweep",
            Self::Embed => "embed",
            Self::Schedule => "schedule",
            Self::Receive => "receive",
            Self::Round => "round",
            Self::Maintain => "maintain",
            Self::Team => "team",
        }
    }
}

impl Engine {
    /// Runs one loop until the engine drains. Every loop has one policy: an error is logged and it starts again.
    pub async fn run(&self, task: Task) {
        self.tasks.set(task, "running", false);
        while let Err(error) = self.run_once(task).await {
            tracing::error!(task = task.name(), %error, "a background loop failed and starts again");
            self.tasks.set(task, "restarting", true);
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            self.tasks.set(task, "running", false);
        }
        self.tasks.set(task, "stopped", false);
    }

    async fn run_once(&self, task: Task) -> Result<()> {
        match task {
            Task::Work => worker::work(self).await,
            Task::Deliver => delivery::deliver(self).await,
            Task::Keep => worker::keep(self).await,
            Task::Listen => worker::listen(self).await,
            Task::Sweep => worker::sweep(self).await,
            Task::Embed => memory::embed(self).await,
            Task::Schedule => schedule::keep_time(self).await,
            Task::Receive => reception::receive(self).await,
            Task::Round => reception::advance_all(self).await,
            Task::Maintain => maintenance::maintain(self).await,
            Task::Team => team::keep(self).await,
        }
    }

    pub fn task_states(&self) -> Vec<TaskState> {
        let board = self.tasks.0.lock().unwrap_or_else(PoisonError::into_inner);
        Task::ALL.iter().filter_map(|task| board.get(task).cloned()).collect()
    }
}
