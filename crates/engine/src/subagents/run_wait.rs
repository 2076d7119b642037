//! Waiting for runs inside a turn. The turn gives up its lane slot meanwhile, because the children need one.

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

/// Longest time between two checks of the runs, in case a wake-up is missed.
const RUN_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long a stopped turn waits for the runs that were stopped with it.
const STOPPED_RUNS_TIMEOUT: Duration = Duration::from_millis(500);
/// Interval between checks in that time.
const STOPPED_RUNS_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// When to stop waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitMode {
    /// When all runs have ended.
    #[default]
    All,
    /// When one run has ended.
    Any,
}

/// Returns when a run of the session may have ended. Streamed text of the session is ignored.
async fn wait_for_change(watch: &mut HubSubscription) {
    while watch.recv().await.is_some_and(|frame| !matches!(frame.kind, FrameKind::Changed)) {}
}

impl Engine {
    pub(super) fn find_running_turn(&self, turn: &TurnId) -> Option<Arc<RunningTurn>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).get(turn).cloned()
    }

    /// Pauses a turn that waits for another: until the guard is dropped it holds no slot, and its time limit and stall
    /// timer stand still.
    pub(crate) fn pause_turn(&self, turn: &TurnId) -> Option<TurnWaitGuard> {
        self.find_running_turn(turn).map(|running| running.begin_wait(&self.lanes))
    }

    /// Waits until enough of the runs have ended or the time limit is reached, and returns the runs.
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

    /// Waits briefly for the runs that were stopped with a turn, so that the turn's end can include their results. Runs
    /// that take longer announce themselves.
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

    /// Returns the child sessions of running runs.
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
            // The turn is released for the shutdown and waits again after the restart; it gets the result there.
            if is_over && !enough && self.is_draining() {
                return Ok(found);
            }
            if enough || is_over {
                // Runs still running announce themselves from now on. One that ended just now counts.
                return self.set_run_waiter(ids.to_vec(), None).await;
            }
            let look = deadline.min(Instant::now() + RUN_POLL_INTERVAL);
            let _ = tokio::time::timeout_at(look, wait_for_change(&mut watch)).await;
        }
    }

    /// Reads the runs and sets the waiting turn of those still running.
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
