//! Those who claim at the same time: for each team they stand in line, and whoever stands there is served in one go.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use polyclaw_domain::id::TeamId;
use tokio::sync::oneshot;

use super::claim_batch::claim_many;
use super::{TaskClaimRequest, TaskClaimResult, claim_oldest};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::tx::Tx;

/// Served in one go at most.
const MAX_CLAIMS_PER_BATCH: usize = 64;

/// A line is there for as long as somebody serves it.
#[derive(Default)]
pub(crate) struct ClaimQueues(Mutex<HashMap<TeamId, Vec<WaitingClaim>>>);

struct WaitingClaim {
    asked: PendingClaim,
    answer: oneshot::Sender<Result<TaskClaimResult>>,
}

/// A claim, and whether somebody still waits for it: what nobody does is not written, however late that is.
#[derive(Clone)]
struct PendingClaim {
    claim: TaskClaimRequest,
    caller: Weak<()>,
}

impl PendingClaim {
    fn has_caller(&self) -> bool {
        self.caller.strong_count() > 0
    }
}

impl ClaimQueues {
    pub async fn enqueue_claim(&self, db: &Db, claim: TaskClaimRequest) -> Result<TaskClaimResult> {
        let (here, team) = (Arc::new(()), claim.team.clone());
        let (answer, answered) = oneshot::channel();
        let asked = PendingClaim { claim, caller: Arc::downgrade(&here) };
        if self.push_is_first(WaitingClaim { asked, answer }) {
            tokio::spawn(ClaimQueueWorker { db: db.clone(), team, is_left: false }.serve_queue());
        }
        let answered = answered.await;
        drop(here);
        answered.map_err(|_| Error::Closed)?
    }

    /// Whether nobody serves the line.
    fn push_is_first(&self, one: WaitingClaim) -> bool {
        let mut lines = self.lock();
        let team = &one.asked.claim.team;
        let is_first = !lines.contains_key(team);
        lines.entry(team.clone()).or_default().push(one);
        is_first
    }

    /// Those who wait. Where nobody does, the line is left.
    fn next_batch(&self, team: &TeamId) -> Vec<WaitingClaim> {
        let mut lines = self.lock();
        let Some(waiting) = lines.get_mut(team).filter(|waiting| !waiting.is_empty()) else {
            lines.remove(team);
            return Vec::new();
        };
        waiting.drain(..waiting.len().min(MAX_CLAIMS_PER_BATCH)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TeamId, Vec<WaitingClaim>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A line that is served. Should whoever serves it be ended in the middle, those who wait are told, and the next who comes
/// serves it anew.
struct ClaimQueueWorker {
    db: Db,
    team: TeamId,
    /// Nobody waited any more: whoever came since has begun a line of their own.
    is_left: bool,
}

impl ClaimQueueWorker {
    async fn serve_queue(mut self) {
        loop {
            let waiting = self.db.claim_queues().next_batch(&self.team);
            if waiting.is_empty() {
                self.is_left = true;
                return;
            }
            let (asked, callers): (Vec<_>, Vec<_>) =
                waiting.into_iter().map(|one| (one.asked, one.answer)).unzip();
            let answers = self.answer_claims(asked).await;
            for (caller, answer) in callers.into_iter().zip(answers) {
                let _ = caller.send(answer);
            }
            // Those who were answered and ask again are written with the rest.
            tokio::task::yield_now().await;
        }
    }

    /// Hands out to all; where each has to look for itself, all in one transaction; where that fails, each by itself.
    async fn answer_claims(&self, asked: Vec<PendingClaim>) -> Vec<Result<TaskClaimResult>> {
        let mut last = match self.claim_for_callers(&asked).await {
            Ok(claimed) => return claimed.into_iter().map(|claimed| claimed.ok_or(Error::Closed)).collect(),
            Err(error) => error,
        };
        let mut answers = Vec::with_capacity(asked.len());
        let is_one = asked.len() == 1;
        for one in asked {
            // Where the database is away, it is away for the rest, too.
            if !is_one && one.has_caller() && !matches!(last, Error::Unavailable { .. }) {
                answers.push(self.claim_single(one).await);
            } else {
                answers.push(Err(last.clone()));
            }
            if let Some(Err(error @ Error::Unavailable { .. })) = answers.last() {
                last = error.clone();
            }
        }
        answers
    }

    /// What each gets who is still there.
    async fn claim_for_callers(&self, asked: &[PendingClaim]) -> Result<Vec<Option<TaskClaimResult>>> {
        if let Some(handed) = self.db.run_autocommit(self.for_present_callers(asked, claim_many)).await? {
            return Ok(handed);
        }
        self.db.write(self.for_present_callers(asked, claim_each)).await.map(Option::unwrap_or_default)
    }

    /// Serves those who are still waited for, and leaves the places of the others empty.
    fn for_present_callers(
        &self,
        asked: &[PendingClaim],
        serve: ClaimBatchFn,
    ) -> impl FnMut(&mut Tx<'_>) -> Result<Option<Vec<Option<TaskClaimResult>>>> + use<> {
        let (team, asked) = (self.team.clone(), asked.to_vec());
        move |tx| {
            let there: Vec<bool> = asked.iter().map(PendingClaim::has_caller).collect();
            let claims =
                asked.iter().zip(&there).filter(|(_, there)| **there).map(|(one, _)| one.claim.clone());
            let Some(got) = serve(tx, &team, &claims.collect::<Vec<_>>())? else { return Ok(None) };
            let mut got = got.into_iter();
            Ok(Some(there.into_iter().map(|there| if there { got.next() } else { None }).collect()))
        }
    }

    async fn claim_single(&self, one: PendingClaim) -> Result<TaskClaimResult> {
        let served = self.db.write(self.for_present_callers(&[one], claim_each)).await?;
        served.into_iter().flatten().flatten().next().ok_or(Error::Closed)
    }
}

impl Drop for ClaimQueueWorker {
    fn drop(&mut self) {
        if !self.is_left {
            self.db.claim_queues().lock().remove(&self.team);
        }
    }
}

/// What each gets. `None`: they cannot be served this way.
type ClaimBatchFn = fn(&mut Tx<'_>, &TeamId, &[TaskClaimRequest]) -> Result<Option<Vec<TaskClaimResult>>>;

fn claim_each(
    tx: &mut Tx<'_>,
    team: &TeamId,
    claims: &[TaskClaimRequest],
) -> Result<Option<Vec<TaskClaimResult>>> {
    // Behind one that was handed to them in vain, and may still be on its way: it has their keys.
    tx.lock_advisory(&format!("claims of {team}"))?;
    claims.iter().map(|claim| claim_oldest(tx, claim)).collect::<Result<Vec<_>>>().map(Some)
}
