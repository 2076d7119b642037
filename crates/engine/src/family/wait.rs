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
use crate::hub::{FrameKind, Watch};
use crate::worker::{Running, Waiting};

/// How long a waiter trusts that it will be woken.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long a turn that is stopped waits for what was stopped with it.
const MOMENT: Duration = Duration::from_millis(500);
/// Between two looks in that time.
const GLANCE: Duration = Duration::from_millis(20);

/// When enough has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// All of them.
    #[default]
    All,
    /// One of them.
    Any,
}

/// Returns when a run of the session may have ended. What is said there meanwhile is no reason to look.
async fn changed(watch: &mut Watch) {
    while watch.recv().await.is_some_and(|frame| !matches!(frame.kind, FrameKind::Changed)) {}
}

impl Engine {
    pub(super) fn running_turn(&self, turn: &TurnId) -> Option<Arc<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).get(turn).cloned()
    }

    /// A turn that waits for another holds no slot meanwhile, and its time and its silence stand still, until this is
    /// dropped.
    pub(crate) fn pause(&self, turn: &TurnId) -> Option<Waiting> {
        self.running_turn(turn).map(|running| running.wait(&self.lanes))
    }

    /// The runs as they stand when enough of them have ended, or the time is over.
    pub(crate) async fn wait_for_runs(
        &self,
        (owner, turn): (&SessionKey, &TurnId),
        ids: &[RunId],
        mode: Mode,
        limit: Duration,
    ) -> Result<Vec<SubagentRun>> {
        let deadline = Instant::now() + limit;
        let _wait = self.begin_wait((owner, turn), &self.children_of(ids).await?).await?;
        if let Some(running) = self.running_turn(turn) {
            running.note_waiting();
        }
        let waiting = self.pause(turn);
        let found = self.look_until((owner, turn), ids, mode, deadline).await;
        drop(waiting);
        found
    }

    /// Runs that a stopped turn waited for are stopped with it and mostly end in a moment: then its own end says what
    /// they came to. Those that take longer announce themselves.
    pub(crate) async fn let_runs_end(&self, turn: &TurnId) -> Result<()> {
        let until = Instant::now() + MOMENT;
        loop {
            let wanted = turn.clone();
            let is_awaiting = self.db().read(move |tx| runs::is_awaiting(tx, &wanted)).await?;
            if !is_awaiting || Instant::now() >= until {
                return Ok(());
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// The sessions in which runs are at work.
    async fn children_of(&self, ids: &[RunId]) -> Result<Vec<SessionKey>> {
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

    async fn look_until(
        &self,
        (owner, turn): (&SessionKey, &TurnId),
        ids: &[RunId],
        mode: Mode,
        deadline: Instant,
    ) -> Result<Vec<SubagentRun>> {
        loop {
            let mut watch = self.hub.watch(owner);
            let is_over = Instant::now() >= deadline || self.is_draining();
            let found = self.note_waiting(ids.to_vec(), Some(turn.clone())).await?;
            let ended = |run: &SubagentRun| run.status != RunStatus::Running;
            let enough = match mode {
                Mode::All => found.iter().all(ended),
                Mode::Any => found.iter().any(ended),
            };
            // The turn is handed back, and waits on in another life: it is told there.
            if is_over && !enough && self.is_draining() {
                return Ok(found);
            }
            if enough || is_over {
                // Those still at work are waited for no longer: they announce themselves. What ended just now counts.
                return self.note_waiting(ids.to_vec(), None).await;
            }
            let look = deadline.min(Instant::now() + LOOK_AGAIN);
            let _ = tokio::time::timeout_at(look, changed(&mut watch)).await;
        }
    }

    /// Reads the runs, and notes in those at work who waits for them.
    async fn note_waiting(&self, ids: Vec<RunId>, turn: Option<TurnId>) -> Result<Vec<SubagentRun>> {
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
