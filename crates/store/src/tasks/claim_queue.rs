//! Queues of concurrent claims, one for each team. All waiting claims of a queue are served in one batch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use polyclaw_domain::id::TeamId;
use tokio::sync::oneshot;

use super::claim_batch::claim_many;
use super::{TaskClaimRequest, TaskClaimResult, claim_oldest};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::tx::Tx;

/// Maximum number of claims in a batch.
const MAX_CLAIMS_PER_BATCH: usize = 64;

/// A queue exists as long as somebody serves it.
#[derive(Default)]
pub(crate) struct ClaimQueues(Mutex<HashMap<TeamId, Vec<WaitingClaim>>>);

struct WaitingClaim {
    asked: PendingClaim,
    answer: oneshot::Sender<Result<TaskClaimResult>>,
}

/// A claim, and whether its caller still waits. An abandoned claim is never written.
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

    /// Adds a claim. Returns whether nobody serves the queue yet.
    fn push_is_first(&self, one: WaitingClaim) -> bool {
        let mut lines = self.lock();
        let team = &one.asked.claim.team;
        let is_first = !lines.contains_key(team);
        lines.entry(team.clone()).or_default().push(one);
        is_first
    }

    /// Takes the next batch. An empty queue is removed.
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

/// The worker of a queue. If it is dropped midway, the waiting callers get an error, and the next claim starts a new
/// worker.
struct ClaimQueueWorker {
    db: Db,
    team: TeamId,
    /// The queue was removed; later claims have started their own.
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
            // Lets callers that were just answered claim again, so that they join the next batch.
            tokio::task::yield_now().await;
        }
    }

    /// Serves all claims with one statement, or in one transaction if that is not possible. If that fails, each claim
    /// runs alone.
    async fn answer_claims(&self, asked: Vec<PendingClaim>) -> Vec<Result<TaskClaimResult>> {
        let mut last = match self.claim_for_callers(&asked).await {
            Ok(claimed) => return claimed.into_iter().map(|claimed| claimed.ok_or(Error::Closed)).collect(),
            Err(error) => error,
        };
        let mut answers = Vec::with_capacity(asked.len());
        let is_one = asked.len() == 1;
        for one in asked {
            // If the database is unavailable, do not try the rest.
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

    /// Returns the result of every caller that is still there.
    async fn claim_for_callers(&self, asked: &[PendingClaim]) -> Result<Vec<Option<TaskClaimResult>>> {
        if let Some(handed) = self.db.run_autocommit(self.for_present_callers(asked, claim_many)).await? {
            return Ok(handed);
        }
        self.db.write(self.for_present_callers(asked, claim_each)).await.map(Option::unwrap_or_default)
    }

    /// Serves the claims with a caller and returns `None` for the others.
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

/// Returns the result of each claim; `None` if they cannot be served this way.
type ClaimBatchFn = fn(&mut Tx<'_>, &TeamId, &[TaskClaimRequest]) -> Result<Option<Vec<TaskClaimResult>>>;

fn claim_each(
    tx: &mut Tx<'_>,
    team: &TeamId,
    claims: &[TaskClaimRequest],
) -> Result<Option<Vec<TaskClaimResult>>> {
    // Waits for an earlier batch statement with the same keys, which may still be running.
    tx.lock_advisory(&format!("claims of {team}"))?;
    claims.iter().map(|claim| claim_oldest(tx, claim)).collect::<Result<Vec<_>>>().map(Some)
}
