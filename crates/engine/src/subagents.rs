//! Sub-agents: sessions that start sessions. A run starts and ends in one transaction each, with everything that
//! belongs to it.

mod artifacts;
mod child_runs;
mod cleanup;
mod complete;
mod deadlock;
mod delegation_stats;
mod git_head;
mod held_announces;
mod inherit;
mod replies;
mod run_wait;
mod session_tree;
mod spawn;

use std::time::Duration;

use polyclaw_domain::id::RunId;
use polyclaw_domain::job::JobLane;
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::run::SubagentRun;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{Tx, jobs, runs};
use tokio::time::Instant;

use crate::command_action::PostCommitEffect;
use crate::core::Engine;
use crate::error::{Error, Result};
use crate::hub::FrameKind;
use crate::ingress::NewIds;
use crate::session::{StopOutcome, stop_session_work};
use complete::complete_idle_run;

pub(crate) use child_runs::{ChildRun, is_descendant};
pub(crate) use complete::{ChildTurnEnd, complete_run, late_announce_lines};
pub(crate) use deadlock::WaitGraph;
pub(crate) use delegation_stats::DelegationStats;
pub use delegation_stats::{DelegationCounts, DelegationEdge, DelegationLatency};
pub(crate) use git_head::read_head_commit;
pub(crate) use held_announces::{HeldNotice, release_held_below};
pub(crate) use run_wait::WaitMode;
pub use session_tree::SessionNode;
pub(crate) use spawn::{
    RunRequester, SpawnRequest, authority_in, check_sandbox_mode, reply_addresses, requesters_of_turn,
};

/// Maximum number of overdue runs handled in one pass.
const OVERDUE_BATCH_SIZE: usize = 100;

/// A run that ended with a turn, and whose owner must be woken.
#[derive(Clone, Debug)]
pub(crate) struct RunCompletion {
    pub owner: SessionKey,
    /// The lane in which a turn of the owner is ready.
    pub ready: Option<JobLane>,
    /// Notice to the owner's people about a held announce.
    pub notice: Option<HeldNotice>,
    pub ended: Option<delegation_stats::DelegationEnd>,
}

impl Engine {
    /// Returns the runs that a session started, newest first.
    pub async fn list_runs(&self, owner: &SessionKey, limit: usize) -> Result<Vec<SubagentRun>> {
        let owner = owner.clone();
        Ok(self.db().read(move |tx| runs::list_by_owner(tx, &owner, limit)).await?)
    }

    /// Returns a running or ended run. Its result is available as long as its owner exists.
    pub async fn find_run(&self, id: &RunId) -> Result<SubagentRun> {
        let wanted = id.clone();
        let found = self.db().read(move |tx| runs::get(tx, &wanted)).await?;
        found.ok_or_else(|| Error::UnknownRun(quote_safely(id.as_str())))
    }

    pub(crate) fn publish_run_completion(&self, closed: RunCompletion) {
        closed.ended.iter().for_each(|ended| self.delegation_stats.count_end(ended, self.now()));
        self.hub.publish(&closed.owner, FrameKind::Changed);
        if let Some(HeldNotice { session, turn, text }) = closed.notice {
            self.hub.publish(&session, FrameKind::Notice { turn_id: turn, text });
        }
        match closed.ready {
            Some(lane) => self.lanes.wake(lane),
            // The outbox may have a notice about a held announce.
            None => self.outbox_wake.notify_one(),
        }
    }

    /// Waits for `longest`, or until the next run exceeds its deadline.
    pub(crate) async fn wait_for_deadline(&self, longest: Duration) -> Result<()> {
        let until = Instant::now() + longest;
        loop {
            let now = self.now();
            let next = self.db().read(move |tx| runs::find_next_deadline(tx, now)).await?;
            // A run is overdue after its deadline, not at it.
            let left = next.map(|at| Duration::from_millis(at.since(now).max(0).unsigned_abs() + 1));
            let wake = left.map_or(until, |left| until.min(Instant::now() + left));
            tokio::select! {
                () = tokio::time::sleep_until(wake) => return Ok(()),
                () = self.run_started.notified() => {}
            }
        }
    }

    /// Ends runs that exceeded their deadline. A running turn stops at its next boundary and ends its run then.
    pub(crate) async fn kill_overdue_runs(&self) -> Result<()> {
        let now = self.now();
        for run in self.db().read(move |tx| runs::list_overdue(tx, now, OVERDUE_BATCH_SIZE)).await? {
            let engine = self.clone();
            let end = move |tx: &mut Tx<'_>| {
                let mut after = Vec::new();
                kill_run(tx, &engine, &run, &mut after)?;
                Ok(after)
            };
            self.apply_effects(self.db().write(end).await?);
        }
        Ok(())
    }
}

/// Stops one run and its descendants, and returns the descendants. Its owner is notified.
pub(crate) fn kill_run(
    tx: &mut Tx<'_>,
    engine: &Engine,
    run: &SubagentRun,
    after: &mut Vec<PostCommitEffect>,
) -> polyclaw_store::Result<Vec<SubagentRun>> {
    stop_run(tx, engine, run, after)?;
    stop_children(tx, engine, &run.child, after)
}

/// Stops all descendants of a session and marks each as stopped together with its owner.
pub(crate) fn stop_children(
    tx: &mut Tx<'_>,
    engine: &Engine,
    owner: &SessionKey,
    after: &mut Vec<PostCommitEffect>,
) -> polyclaw_store::Result<Vec<SubagentRun>> {
    let mut stopped = Vec::new();
    let mut owners = vec![owner.clone()];
    while let Some(owner) = owners.pop() {
        for run in runs::list_running_by_owner(tx, &owner)? {
            runs::mark_stopped(tx, &run.id)?;
            stop_run(tx, engine, &run, after)?;
            owners.push(run.child.clone());
            stopped.push(run);
        }
    }
    Ok(stopped)
}

/// Stops a run. A running turn ends the run when it stops; an idle child's run is ended here.
pub(crate) fn stop_run(
    tx: &mut Tx<'_>,
    engine: &Engine,
    run: &SubagentRun,
    after: &mut Vec<PostCommitEffect>,
) -> polyclaw_store::Result<StopOutcome> {
    let (stopped, effects) = stop_session_work(tx, &run.child, engine.now())?;
    after.extend(effects);
    if jobs::session_load(tx, &run.child)?.running.is_none() {
        let fresh = NewIds::new(engine, Some(run.trace.clone()));
        after.extend(
            complete_idle_run(tx, run, &fresh, &engine.settings())?.map(PostCommitEffect::RunCompleted),
        );
    }
    Ok(stopped)
}

/// Ends the run of a session in which nothing is left that could end it.
pub(crate) fn complete_if_idle(
    tx: &mut Tx<'_>,
    engine: &Engine,
    session: &SessionKey,
) -> polyclaw_store::Result<Option<PostCommitEffect>> {
    let Some(run) = runs::find_running_by_child(tx, session)? else { return Ok(None) };
    if !jobs::session_load(tx, session)?.is_idle() || !runs::list_running_by_owner(tx, session)?.is_empty() {
        return Ok(None);
    }
    let fresh = NewIds::new(engine, Some(run.trace.clone()));
    Ok(complete_idle_run(tx, &run, &fresh, &engine.settings())?.map(PostCommitEffect::RunCompleted))
}
