//! Those who claim at the same time: for each team they stand in line, and whoever stands there is served in one go.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use polyclaw_domain::id::TeamId;
use tokio::sync::oneshot;

use super::together::hand_out;
use super::{Claim, Claimed, claim_oldest};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::tx::Tx;

/// Served in one go at most.
const MOST: usize = 64;

/// A line is there for as long as somebody serves it.
#[derive(Default)]
pub(crate) struct Lines(Mutex<HashMap<TeamId, Vec<Waiting>>>);

struct Waiting {
    asked: Asked,
    answer: oneshot::Sender<Result<Claimed>>,
}

/// A claim, and whether somebody still waits for it: what nobody does is not written, however late that is.
#[derive(Clone)]
struct Asked {
    claim: Claim,
    caller: Weak<()>,
}

impl Asked {
    fn is_waited_for(&self) -> bool {
        self.caller.strong_count() > 0
    }
}

impl Lines {
    pub async fn join(&self, db: &Db, claim: Claim) -> Result<Claimed> {
        let (here, team) = (Arc::new(()), claim.team.clone());
        let (answer, answered) = oneshot::channel();
        let asked = Asked { claim, caller: Arc::downgrade(&here) };
        if self.is_first(Waiting { asked, answer }) {
            tokio::spawn(Served { db: db.clone(), team, is_left: false }.serve());
        }
        let answered = answered.await;
        drop(here);
        answered.map_err(|_| Error::Closed)?
    }

    /// Whether nobody serves the line.
    fn is_first(&self, one: Waiting) -> bool {
        let mut lines = self.lock();
        let team = &one.asked.claim.team;
        let is_first = !lines.contains_key(team);
        lines.entry(team.clone()).or_default().push(one);
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
            let (asked, callers): (Vec<_>, Vec<_>) =
                waiting.into_iter().map(|one| (one.asked, one.answer)).unzip();
            let answers = self.answers(asked).await;
            for (caller, answer) in callers.into_iter().zip(answers) {
                let _ = caller.send(answer);
            }
            // Those who were answered and ask again are written with the rest.
            tokio::task::yield_now().await;
        }
    }

    /// Hands out to all; where each has to look for itself, all in one transaction; where that fails, each by itself.
    async fn answers(&self, asked: Vec<Asked>) -> Vec<Result<Claimed>> {
        let mut last = match self.served(&asked).await {
            Ok(claimed) => return claimed.into_iter().map(|claimed| claimed.ok_or(Error::Closed)).collect(),
            Err(error) => error,
        };
        let mut answers = Vec::with_capacity(asked.len());
        let is_one = asked.len() == 1;
        for one in asked {
            // Where the database is away, it is away for the rest, too.
            if !is_one && one.is_waited_for() && !matches!(last, Error::Unavailable { .. }) {
                answers.push(self.alone(one).await);
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
    async fn served(&self, asked: &[Asked]) -> Result<Vec<Option<Claimed>>> {
        if let Some(handed) = self.db.once(self.to_those_there(asked, hand_out)).await? {
            return Ok(handed);
        }
        self.db.write(self.to_those_there(asked, each)).await.map(Option::unwrap_or_default)
    }

    /// Serves those who are still waited for, and leaves the places of the others empty.
    fn to_those_there(
        &self,
        asked: &[Asked],
        serve: Serve,
    ) -> impl FnMut(&mut Tx<'_>) -> Result<Option<Vec<Option<Claimed>>>> + use<> {
        let (team, asked) = (self.team.clone(), asked.to_vec());
        move |tx| {
            let there: Vec<bool> = asked.iter().map(Asked::is_waited_for).collect();
            let claims =
                asked.iter().zip(&there).filter(|(_, there)| **there).map(|(one, _)| one.claim.clone());
            let Some(got) = serve(tx, &team, &claims.collect::<Vec<_>>())? else { return Ok(None) };
            let mut got = got.into_iter();
            Ok(Some(there.into_iter().map(|there| if there { got.next() } else { None }).collect()))
        }
    }

    async fn alone(&self, one: Asked) -> Result<Claimed> {
        let served = self.db.write(self.to_those_there(&[one], each)).await?;
        served.into_iter().flatten().flatten().next().ok_or(Error::Closed)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if !self.is_left {
            self.db.claims().lock().remove(&self.team);
        }
    }
}

/// What each gets. `None`: they cannot be served this way.
type Serve = fn(&mut Tx<'_>, &TeamId, &[Claim]) -> Result<Option<Vec<Claimed>>>;

fn each(tx: &mut Tx<'_>, team: &TeamId, claims: &[Claim]) -> Result<Option<Vec<Claimed>>> {
    // Behind one that was handed to them in vain, and may still be on its way: it has their keys.
    tx.alone(&format!("claims of {team}"))?;
    claims.iter().map(|claim| claim_oldest(tx, claim)).collect::<Result<Vec<_>>>().map(Some)
}
