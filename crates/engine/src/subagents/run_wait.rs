//! Waiting for runs inside a turn. It holds no slot of a lane meanwhile: the children need one.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use polyclaw_domain::id::{RunId, TurnId};
use polyclaw_domain::run::{RunStatus, SubagentRun};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{Tx, runs};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;

use crate::core::Engine;
use crate::error::Result;
use crate::hub::{FrameKind, HubSubscription};
use crate::worker::{RunningTurn, TurnWaitGuard};

/// How long a waiter trusts that it will be woken.
const RUN_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long a turn that is stopped waits for what was stopped with it.
const STOPPED_RUNS_TIMEOUT: Duration = Duration::from_millis(500);
/// Between two looks in that time.
const STOPPED_RUNS_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// When enough has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitMode {
    /// All of them.
    #[default]
    All,
    /// One of them.
    Any,
}

/// Returns when a run of the session may have ended. What is said there meanwhile is no reason to look.
async fn wait_for_change(watch: &mut HubSubscription) {
    while watch.recv().await.is_some_and(|frame| !matches!(frame.kind, FrameKind::Changed)) {}
}

impl Engine {
    pub(super) fn find_running_turn(&self, turn: &TurnId) -> Option<Arc<RunningTurn>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).get(turn).cloned()
    }

    /// A turn that waits for another holds no slot meanwhile, and its time and its silence stand still, until this is
    /// dropped.
    pub(crate) fn pause_turn(&self, turn: &TurnId) -> Option<TurnWaitGuard> {
        self.find_running_turn(turn).map(|running| running.begin_wait(&self.lanes))
    }

    /// The runs as they stand when enough of them have ended, or the time is over.
    pub(crate) async fn wait_for_runs(
        &self,
        (owner, turn): (&SessionKey, &TurnId),
        ids: &[RunId],
        mode: WaitMode,
        limit: Duration,
    ) -> Result<Vec<SubagentRun>> {
        let deadline = Instant::now() + limit;
        let _wait = self.begin_wait((owner, turn), &self.running_child_sessions(ids).await?).await?;
        if let Some(running) = self.find_running_turn(turn) {
            running.mark_waited();
        }
        let waiting = self.pause_turn(turn);
        let found = self.poll_runs_until((owner, turn), ids, mode, deadline).await;
        drop(waiting);
        found
    }

    /// Runs that a stopped turn waited for are stopped with it and mostly end in a moment: then its own end says what
    /// they came to. Those that take longer announce themselves.
    pub(crate) async fn wait_for_stopped_runs(&self, turn: &TurnId) -> Result<()> {
        let until = Instant::now() + STOPPED_RUNS_TIMEOUT;
        loop {
            let wanted = turn.clone();
            let is_awaiting = self.db().read(move |tx| runs::is_awaiting(tx, &wanted)).await?;
            if !is_awaiting || Instant::now() >= until {
                return Ok(());
            }
            tokio::time::sleep(STOPPED_RUNS_POLL_INTERVAL).await;
        }
    }

    /// The sessions in which runs are at work.
    async fn running_child_sessions(&self, ids: &[RunId]) -> Result<Vec<SessionKey>> {
        let ids = ids.to_vec();
        let read = move |tx: &mut Tx<'_>| {
            let mut children = Vec::new();
            for id in &ids {
                let run = runs::get(tx, id)?.filter(|run| run.status == RunStatus::Running);
                children.extend(run.map(|run| run.child));
            }
            Ok(children)
        };
        Ok(self.db().read(read).await?)
    }

    async fn poll_runs_until(
        &self,
        (owner, turn): (&SessionKey, &TurnId),
        ids: &[RunId],
        mode: WaitMode,
        deadline: Instant,
    ) -> Result<Vec<SubagentRun>> {
        loop {
            let mut watch = self.hub.subscribe(owner);
            let is_over = Instant::now() >= deadline || self.is_draining();
            let found = self.set_run_waiter(ids.to_vec(), Some(turn.clone())).await?;
            let ended = |run: &SubagentRun| run.status != RunStatus::Running;
            let enough = match mode {
                WaitMode::All => found.iter().all(ended),
                WaitMode::Any => found.iter().any(ended),
            };
            // The turn is handed back, and waits on in another life: it is told there.
            if is_over && !enough && self.is_draining() {
                return Ok(found);
            }
            if enough || is_over {
                // Those still at work are waited for no longer: they announce themselves. What ended just now counts.
                return self.set_run_waiter(ids.to_vec(), None).await;
            }
            let look = deadline.min(Instant::now() + RUN_POLL_INTERVAL);
            let _ = tokio::time::timeout_at(look, wait_for_change(&mut watch)).await;
        }
    }

    /// Reads the runs, and notes in those at work who waits for them.
    async fn set_run_waiter(&self, ids: Vec<RunId>, turn: Option<TurnId>) -> Result<Vec<SubagentRun>> {
        let write = move |tx: &mut Tx<'_>| {
            let mut found = Vec::new();
            for id in &ids {
                let Some(run) = runs::get(tx, id)? else { continue };
                if run.status == RunStatus::Running && run.awaited_by != turn {
                    runs::set_awaiting_turn(tx, id, turn.as_ref())?;
                }
                found.push(run);
            }
            Ok(found)
        };
        Ok(self.db().write(write).await?)
    }
}
