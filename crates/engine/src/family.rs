//! Families: sessions that begin sessions. A run begins and ends in one transaction each, with all that belongs to it.

mod begin;
mod close;
mod wait;

use polyclaw_domain::job::Lane;
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::run::Run;
use polyclaw_store::runs;

use crate::core::Engine;
use crate::error::Result;
use crate::hub::FrameKind;

pub(crate) use begin::{Wish, inside, reply_to};
pub(crate) use close::{Closing, close, told_late};
pub(crate) use wait::Mode;

/// Runs whose time is over, looked after at once.
const OVERDUE: usize = 100;

/// A run has ended with a turn: whoever asked for it is to be woken.
#[derive(Clone, Debug)]
pub(crate) struct Closed {
    pub owner: SessionKey,
    /// Where a turn of the owner is ready.
    pub ready: Option<Lane>,
}

impl Engine {
    /// Everything a session asked for, the newest first.
    pub async fn runs_of(&self, owner: &SessionKey, limit: usize) -> Result<Vec<Run>> {
        let owner = owner.clone();
        Ok(self.db().read(move |tx| runs::of_owner(tx, &owner, limit)).await?)
    }

    pub(crate) fn tell_closed(&self, closed: Closed) {
        self.hub.publish(&closed.owner, FrameKind::Changed);
        if let Some(lane) = closed.ready {
            self.lanes.wake(lane);
        }
    }

    /// Stops what a session began, and what that began.
    pub(crate) async fn stop_children(&self, owner: &SessionKey) -> Result<usize> {
        let mut stopped = 0;
        let mut owners = vec![owner.clone()];
        while let Some(owner) = owners.pop() {
            let wanted = owner.clone();
            for run in self.db().read(move |tx| runs::at_work(tx, &wanted)).await? {
                owners.push(run.child.clone());
                self.stop_run(&run).await?;
                stopped += 1;
            }
        }
        Ok(stopped)
    }

    /// Ends runs that took too long. Their turns end at the next boundary, and with them the runs.
    pub(crate) async fn end_overdue(&self) -> Result<()> {
        let now = self.now();
        for run in self.db().read(move |tx| runs::overdue(tx, now, OVERDUE)).await? {
            self.stop_run(&run).await?;
            self.stop_children(&run.child).await?;
        }
        Ok(())
    }

    /// A child that is at work ends its run with its turn; one that only waits has it ended here.
    async fn stop_run(&self, run: &Run) -> Result<()> {
        let stopped = self.stop_session(&run.child).await?;
        if stopped.turn.is_none() {
            self.close_idle(run).await?;
        }
        Ok(())
    }
}
