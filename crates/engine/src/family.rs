//! Families: sessions that begin sessions. A run begins and ends in one transaction each, with all that belongs to it.

mod artifacts;
mod begin;
mod child;
mod close;
mod commits;
mod held;
mod lend;
mod mutual;
mod pairs;
mod put_away;
mod replies;
mod tree;
mod wait;

use std::time::Duration;

use polyclaw_domain::id::RunId;
use polyclaw_domain::job::JobLane;
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::run::SubagentRun;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{Tx, jobs, runs};
use tokio::time::Instant;

use crate::core::Engine;
use crate::deed::After;
use crate::error::{Error, Result};
use crate::hub::FrameKind;
use crate::ingress::Fresh;
use crate::session::{Stopped, stop};
use close::close_idle;

pub(crate) use begin::{AskedBy, Wish, asked_by, authority_in, check_walls, reply_to};
pub(crate) use child::{Child, is_below};
pub(crate) use close::{Closing, close, told_late};
pub(crate) use commits::head;
pub(crate) use held::{HeldNotice, release_below};
pub(crate) use mutual::Waits;
pub(crate) use pairs::Pairs;
pub use pairs::{Counts, Latency, Pair};
pub use tree::{Branch, Doing};
pub(crate) use wait::Mode;

/// Runs whose time is over, looked after at once.
const OVERDUE: usize = 100;

/// A run has ended with a turn: whoever asked for it is to be woken.
#[derive(Clone, Debug)]
pub(crate) struct Closed {
    pub owner: SessionKey,
    /// Where a turn of the owner is ready.
    pub ready: Option<JobLane>,
    /// What its people are told of an announce that waits for them.
    pub notice: Option<HeldNotice>,
    pub ended: Option<pairs::Ended>,
}

impl Engine {
    /// Everything a session asked for, the newest first.
    pub async fn runs_of(&self, owner: &SessionKey, limit: usize) -> Result<Vec<SubagentRun>> {
        let owner = owner.clone();
        Ok(self.db().read(move |tx| runs::list_by_owner(tx, &owner, limit)).await?)
    }

    /// A run, at work or ended: its result can be asked for as long as its owner is there.
    pub async fn run_of_id(&self, id: &RunId) -> Result<SubagentRun> {
        let wanted = id.clone();
        let found = self.db().read(move |tx| runs::get(tx, &wanted)).await?;
        found.ok_or_else(|| Error::UnknownRun(quote_safely(id.as_str())))
    }

    pub(crate) fn tell_closed(&self, closed: Closed) {
        closed.ended.iter().for_each(|ended| self.pairs.count(ended, self.now()));
        self.hub.publish(&closed.owner, FrameKind::Changed);
        if let Some(HeldNotice { session, turn, text }) = closed.notice {
            self.hub.publish(&session, FrameKind::Notice { turn_id: turn, text });
        }
        match closed.ready {
            Some(lane) => self.lanes.wake(lane),
            // People may have been told that it waits.
            None => self.outbox_wake.notify_one(),
        }
    }

    /// Waits for so long, or until the time of a run is over before.
    pub(crate) async fn wait_for_deadline(&self, longest: Duration) -> Result<()> {
        let until = Instant::now() + longest;
        loop {
            let now = self.now();
            let next = self.db().read(move |tx| runs::find_next_deadline(tx, now)).await?;
            // It is over when the clock is past it, not when it is there.
            let left = next.map(|at| Duration::from_millis(at.since(now).max(0).unsigned_abs() + 1));
            let wake = left.map_or(until, |left| until.min(Instant::now() + left));
            tokio::select! {
                () = tokio::time::sleep_until(wake) => return Ok(()),
                () = self.run_begun.notified() => {}
            }
        }
    }

    /// Ends runs that took too long. Their turns end at the next boundary, and with them the runs.
    pub(crate) async fn end_overdue(&self) -> Result<()> {
        let now = self.now();
        for run in self.db().read(move |tx| runs::list_overdue(tx, now, OVERDUE)).await? {
            let engine = self.clone();
            let end = move |tx: &mut Tx<'_>| {
                let mut after = Vec::new();
                kill(tx, &engine, &run, &mut after)?;
                Ok(after)
            };
            self.follow(self.db().write(end).await?);
        }
        Ok(())
    }
}

/// Stops one run, and what was begun for it: that is returned. Its owner is told of it.
pub(crate) fn kill(
    tx: &mut Tx<'_>,
    engine: &Engine,
    run: &SubagentRun,
    after: &mut Vec<After>,
) -> polyclaw_store::Result<Vec<SubagentRun>> {
    stop_run(tx, engine, run, after)?;
    stop_children(tx, engine, &run.child, after)
}

/// Stops what a session began, and what that began; each is marked as stopped with its owner.
pub(crate) fn stop_children(
    tx: &mut Tx<'_>,
    engine: &Engine,
    owner: &SessionKey,
    after: &mut Vec<After>,
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

/// A child that is at work ends its run with its turn; one that only waits has it ended here.
pub(crate) fn stop_run(
    tx: &mut Tx<'_>,
    engine: &Engine,
    run: &SubagentRun,
    after: &mut Vec<After>,
) -> polyclaw_store::Result<Stopped> {
    let (stopped, told) = stop(tx, &run.child, engine.now())?;
    after.extend(told);
    if jobs::session_load(tx, &run.child)?.running.is_none() {
        let fresh = Fresh::new(engine, Some(run.trace.clone()));
        after.extend(close_idle(tx, run, &fresh, &engine.settings())?.map(After::Closed));
    }
    Ok(stopped)
}

/// Ends the run of a session in which nothing is left that could end it.
pub(crate) fn close_if_idle(
    tx: &mut Tx<'_>,
    engine: &Engine,
    session: &SessionKey,
) -> polyclaw_store::Result<Option<After>> {
    let Some(run) = runs::find_running_by_child(tx, session)? else { return Ok(None) };
    if !jobs::session_load(tx, session)?.is_idle() || !runs::list_running_by_owner(tx, session)?.is_empty() {
        return Ok(None);
    }
    let fresh = Fresh::new(engine, Some(run.trace.clone()));
    Ok(close_idle(tx, &run, &fresh, &engine.settings())?.map(After::Closed))
}
