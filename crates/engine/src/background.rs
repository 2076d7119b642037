//! Background loops, each with a name and the same restart policy. The health page shows this list.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::core::Engine;
use crate::error::Result;
use crate::{cron, delivery, inbound, maintenance, memory, team, worker};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BackgroundTask {
    /// Claims turn jobs and drives them.
    Work,
    /// Sends the messages in the outbox.
    Deliver,
    /// Renews leases and takes over those that expired.
    RenewLeases,
    /// Receives signals from other nodes.
    Listen,
    /// Deletes expired rows.
    Sweep,
    /// Embeds memories.
    Embed,
    /// Starts cron jobs when they are due.
    Cron,
    /// Receives messages from every channel.
    Receive,
    /// Continues broadcasts: messages that several agents answer.
    Broadcast,
    /// Removes unused sessions, or reports them.
    Maintain,
    /// Reconciles teams: task leases, task events to relay, idle members, members to stop.
    Team,
}

#[derive(Clone, Debug, Serialize)]
pub struct BackgroundTaskState {
    pub task: BackgroundTask,
    pub state: &'static str,
    pub restarts: u32,
}

#[derive(Default)]
pub(crate) struct BackgroundTasks(Mutex<HashMap<BackgroundTask, BackgroundTaskState>>);

impl BackgroundTasks {
    fn set_state(&self, task: BackgroundTask, state: &'static str, restarted: bool) {
        let mut board = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = board.entry(task).or_insert(BackgroundTaskState { task, state, restarts: 0 });
        entry.state = state;
        entry.restarts += u32::from(restarted);
    }
}

impl BackgroundTask {
    pub const ALL: [Self; 11] = [
        Self::Work,
        Self::Deliver,
        Self::RenewLeases,
        Self::Listen,
        Self::Sweep,
        Self::Embed,
        Self::Cron,
        Self::Receive,
        Self::Broadcast,
        Self::Maintain,
        Self::Team,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Deliver => "deliver",
            Self::RenewLeases => "renew_leases",
            Self::Listen => "listen",
            Self::Sweep => "sweep",
            Self::Embed => "embed",
            Self::Cron => "cron",
            Self::Receive => "receive",
            Self::Broadcast => "broadcast",
            Self::Maintain => "maintain",
            Self::Team => "team",
        }
    }
}

impl Engine {
    /// Runs one loop until the engine drains. After an error, which is logged, it is restarted.
    pub async fn run_task(&self, task: BackgroundTask) {
        self.background_tasks.set_state(task, "running", false);
        while let Err(error) = self.run_task_once(task).await {
            tracing::error!(task = task.name(), %error, "background loop failed; restarting it");
            self.background_tasks.set_state(task, "restarting", true);
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            self.background_tasks.set_state(task, "running", false);
        }
        self.background_tasks.set_state(task, "stopped", false);
    }

    async fn run_task_once(&self, task: BackgroundTask) -> Result<()> {
        match task {
            BackgroundTask::Work => worker::run_worker(self).await,
            BackgroundTask::Deliver => delivery::run_delivery_loop(self).await,
            BackgroundTask::RenewLeases => worker::run_lease_loop(self).await,
            BackgroundTask::Listen => worker::listen_for_signals(self).await,
            BackgroundTask::Sweep => worker::run_sweep_loop(self).await,
            BackgroundTask::Embed => memory::run_embed_loop(self).await,
            BackgroundTask::Cron => cron::run_cron_loop(self).await,
            BackgroundTask::Receive => inbound::run_channels(self).await,
            BackgroundTask::Broadcast => inbound::run_broadcast_loop(self).await,
            BackgroundTask::Maintain => maintenance::run_maintenance_loop(self).await,
            BackgroundTask::Team => team::run_reconcile_loop(self).await,
        }
    }

    pub fn background_task_states(&self) -> Vec<BackgroundTaskState> {
        let board = self.background_tasks.0.lock().unwrap_or_else(PoisonError::into_inner);
        BackgroundTask::ALL.iter().filter_map(|task| board.get(task).cloned()).collect()
    }
}
