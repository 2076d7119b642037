//! Those who claim at the same time: they stand in line, and whoever stands there is written in one transaction.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::{Claim, Claimed, claim_oldest, claim_together};
use crate::db::Db;
use crate::error::{Error, Result};

/// A line is there for as long as somebody serves it.
#[derive(Default)]
pub(crate) struct Line(Mutex<Option<Vec<Waiting>>>);

struct Waiting {
    claim: Claim,
    caller: oneshot::Sender<Result<Claimed>>,
}

impl Line {
    pub async fn join(&self, db: &Db, claim: Claim) -> Result<Claimed> {
        let (caller, answer) = oneshot::channel();
        if self.is_first(Waiting { claim, caller }) {
            tokio::spawn(Served(db.clone()).serve());
        }
        answer.await.map_err(|_| Error::Closed)?
    }

    /// Whether nobody serves the line.
    fn is_first(&self, one: Waiting) -> bool {
        let mut line = self.lock();
        let is_first = line.is_none();
        line.get_or_insert_default().push(one);
        is_first
    }

    /// All who wait. Where nobody does, the line is left.
    fn next(&self) -> Vec<Waiting> {
        let mut line = self.lock();
        match line.as_mut().filter(|waiting| !waiting.is_empty()) {
            Some(waiting) => std::mem::take(waiting),
            None => {
                *line = None;
                Vec::new()
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Waiting>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A line that is served. Should whoever serves it be ended in the middle, those who wait are told, and the next who comes
/// serves it anew.
struct Served(Db);

impl Served {
    async fn serve(self) {
        loop {
            let waiting = self.0.claims().next();
            if waiting.is_empty() {
                return;
            }
            // While the database is away callers give up: what nobody waits for is not begun.
            let waited_for = waiting.into_iter().filter(|one| !one.caller.is_closed());
            let (claims, callers): (Vec<_>, Vec<_>) = waited_for.map(|one| (one.claim, one.caller)).unzip();
            let answers = answers(&self.0, claims).await;
            for (caller, answer) in callers.into_iter().zip(answers) {
                let _ = caller.send(answer);
            }
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        *self.0.claims().lock() = None;
    }
}

/// Writes them together; where that fails, each by itself.
async fn answers(db: &Db, claims: Vec<Claim>) -> Vec<Result<Claimed>> {
    let all = claims.clone();
    match db.write(move |tx| claim_together(tx, &all)).await {
        Ok(claimed) => claimed.into_iter().map(Ok).collect(),
        Err(error) if claims.len() == 1 || matches!(error, Error::Unavailable { .. }) => {
            claims.iter().map(|_| Err(error.clone())).collect()
        }
        Err(_) => {
            let mut answers = Vec::new();
            for claim in claims {
                answers.push(db.write(move |tx| claim_oldest(tx, &claim)).await);
            }
            answers
        }
    }
}
