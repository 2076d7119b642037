//! Those who claim at the same time: for each team they stand in line, and whoever stands there is written in one
//! transaction.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use polyclaw_domain::id::TeamId;
use tokio::sync::oneshot;

use super::{Claim, Claimed, claim_oldest, claim_together};
use crate::db::Db;
use crate::error::{Error, Result};

/// Written in one transaction at most.
const MOST: usize = 64;

/// A line is there for as long as somebody serves it.
#[derive(Default)]
pub(crate) struct Lines(Mutex<HashMap<TeamId, Vec<Waiting>>>);

struct Waiting {
    claim: Claim,
    caller: oneshot::Sender<Result<Claimed>>,
}

impl Lines {
    pub async fn join(&self, db: &Db, claim: Claim) -> Result<Claimed> {
        let team = claim.team.clone();
        let (caller, answer) = oneshot::channel();
        if self.is_first(Waiting { claim, caller }) {
            tokio::spawn(Served { db: db.clone(), team, is_left: false }.serve());
        }
        answer.await.map_err(|_| Error::Closed)?
    }

    /// Whether nobody serves the line.
    fn is_first(&self, one: Waiting) -> bool {
        let mut lines = self.lock();
        let is_first = !lines.contains_key(&one.claim.team);
        lines.entry(one.claim.team.clone()).or_default().push(one);
        is_first
    }

    /// Those who wait. Where nobody does, the line is left.
    fn next(&self, team: &TeamId) -> Vec<Waiting> {
        let mut lines = self.lock();
        let Some(waiting) = lines.get_mut(team).filter(|waiting| !waiting.is_empty()) else {
            lines.remove(team);
            return Vec::new();
        };
        waiting.drain(..waiting.len().min(MOST)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TeamId, Vec<Waiting>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A line that is served. Should whoever serves it be ended in the middle, those who wait are told, and the next who comes
/// serves it anew.
struct Served {
    db: Db,
    team: TeamId,
    /// Nobody waited any more: whoever came since has begun a line of their own.
    is_left: bool,
}

impl Served {
    async fn serve(mut self) {
        loop {
            let waiting = self.db.claims().next(&self.team);
            if waiting.is_empty() {
                self.is_left = true;
                return;
            }
            // While the database is away callers give up: what nobody waits for is not begun.
            let waited_for = waiting.into_iter().filter(|one| !one.caller.is_closed());
            let (claims, callers): (Vec<_>, Vec<_>) = waited_for.map(|one| (one.claim, one.caller)).unzip();
            if claims.is_empty() {
                continue;
            }
            let answers = self.answers(claims).await;
            for (caller, answer) in callers.into_iter().zip(answers) {
                let _ = caller.send(answer);
            }
            // Those who were answered and ask again are written with the rest.
            tokio::task::yield_now().await;
        }
    }

    /// Writes them together; where that fails, each by itself.
    async fn answers(&self, claims: Vec<Claim>) -> Vec<Result<Claimed>> {
        let (team, all) = (self.team.clone(), claims.clone());
        match self.db.write(move |tx| claim_together(tx, &team, &all)).await {
            Ok(claimed) => claimed.into_iter().map(Ok).collect(),
            Err(error) if claims.len() == 1 || matches!(error, Error::Unavailable { .. }) => {
                claims.iter().map(|_| Err(error.clone())).collect()
            }
            Err(_) => {
                let mut answers = Vec::new();
                for claim in claims {
                    answers.push(self.db.write(move |tx| claim_oldest(tx, &claim)).await);
                }
                answers
            }
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if !self.is_left {
            self.db.claims().lock().remove(&self.team);
        }
    }
}
